module github.com/steadfast-rs/steadfast/kits/go

go 1.22
