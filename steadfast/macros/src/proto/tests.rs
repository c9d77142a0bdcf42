use expect_test::{Expect, expect};
use quote::ToTokens;
use syn::{File, Item, TraitItem};

use super::*;

/// A trait with the methods of the first file. The files stand in a folder of a package.
fn fill(files: &[(&str, &str)], options: &str) -> Result<(ItemTrait, Given), Refusal> {
    let package = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(package.path().join("proto")).expect("a folder");
    for (name, text) in files {
        std::fs::write(package.path().join(name), text).expect("a file");
    }
    let mut item: ItemTrait = syn::parse_quote! { pub trait Orders {} };
    let options = syn::parse_str(options).expect("options");
    let given = given(&mut item, package.path(), "proto/orders.proto", &options)?;
    Ok((item, given))
}

fn file(text: &str) -> String {
    format!("syntax = \"proto3\";\npackage shop;\n{text}")
}

fn refused(text: &str) -> String {
    let text = file(text);
    fill(&[("proto/orders.proto", &text)], "").err().expect("it is refused")
}

/// The code without its attributes, an item a line.
fn short(item: &ItemTrait, given: &Given) -> String {
    let mut lines = Vec::new();
    for member in &item.items {
        let TraitItem::Fn(function) = member else { panic!("a method") };
        lines.push(function.sig.to_token_stream().to_string());
    }
    let file: File = syn::parse2(given.types.clone()).expect("it parses");
    for item in file.items {
        match item {
            Item::Struct(mut item) => {
                item.attrs.clear();
                item.fields.iter_mut().for_each(|field| field.attrs.clear());
                lines.push(item.to_token_stream().to_string());
            }
            Item::Enum(mut item) => {
                item.attrs.clear();
                lines.push(item.to_token_stream().to_string());
            }
            _ => {}
        }
    }
    // A person's blanks, and a field a line.
    let mut text = lines.join("\n") + "\n";
    for (from, to) in
        [(" , ", ",\n  "), (":: ", "::"), (" ::", "::"), (" < ", "<"), (" >", ">"), (" : ", ": ")]
    {
        text = text.replace(from, to);
    }
    text
}

fn check(text: &str, options: &str, expected: Expect) {
    let text = file(text);
    let (item, given) = fill(&[("proto/orders.proto", &text)], options).expect("it is a service");
    expected.assert_eq(&short(&item, &given));
}

#[test]
fn rpcs_become_methods_and_messages_types() {
    let text = "
        service Orders {
          rpc PlaceOrder(Order) returns (Order);
          rpc Match(Order) returns (Order) { option idempotency_level = NO_SIDE_EFFECTS; }
        }
        message Order {
          enum State { option allow_alias = true; STATE_OPEN = 0; STATE_NEW = 0; DONE = 1; }
          message Line { fixed64 type = 3; sint32 count = 1; }
          State state = 7;
          repeated Line lines = 2;
          map<int32, Line> by_shelf = 9;
          optional float weight = 4;
          oneof place { string street = 5; bytes code = 6; }
          Order next = 1;
        }
        message Unused {}";
    check(
        text,
        "",
        expect![[r#"
        fn place_order (& mut self,
          request: Order) -> Order
        fn r#match (& self,
          request: Order) -> Order
        pub struct Order { pub next :::core::option::Option <::std::boxed::Box<Order>>,
          pub lines :::std::vec::Vec<OrderLine>,
          pub weight :::core::option::Option<f32>,
          pub street :::core::option::Option <::std::string::String>,
          pub code :::core::option::Option <::steadfast::contract::Base64>,
          pub state: OrderState,
          pub by_shelf :::std::collections::BTreeMap<i32,
          OrderLine>,
          }
        pub struct OrderLine { pub count: i32,
          pub r#type: u64,
          }
        pub enum OrderState { # [default] # [serde (rename = "STATE_NEW",
          alias = "STATE_OPEN")] New,
          # [serde (rename = "DONE" ,)] Done,
          }
    "#]],
    );
}

#[test]
fn methods_have_the_error_and_the_context_that_the_attribute_names() {
    let text = "
        service Orders { rpc Get(Question) returns (Answer); }
        message Question {}
        message Answer { string text = 1; }";
    let options = "proto = \"orders.proto\", errors = crate::Unsold, context";
    check(
        text,
        options,
        expect![[r#"
        fn get (& mut self,
          context: &::steadfast::Context,
          request: Question) ->::core::result::Result<Answer,
          crate::Unsold>
        pub struct Answer { pub text :::std::string::String,
          }
        pub struct Question { }
    "#]],
    );
}

#[test]
fn comments_become_documentation_without_tests() {
    let text = file(
        "// Orders.\nservice Orders {\n// Gets.\n//\n//     code\n// ```\n// more\n// ```\n\
         rpc Get(A) returns (A);\n}\nmessage A { int32 a = 1; // Behind.\n }",
    );
    let (item, given) = fill(&[("proto/orders.proto", &text)], "").expect("it is a service");
    let docs = |attributes: &[syn::Attribute]| {
        let texts = attributes.iter().map(|it| it.to_token_stream().to_string());
        texts.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(docs(&item.attrs), "# [doc = \" Orders.\"]");
    let TraitItem::Fn(get) = &item.items[0] else { panic!("a method") };
    assert_eq!(
        docs(&get.attrs),
        "# [doc = \" Gets.\"] # [doc = \"\"] # [doc = \" code\"] # [doc = \" ```text\"] \
         # [doc = \" more\"] # [doc = \" ```\"]"
    );
    assert!(given.types.to_string().contains("# [doc = \" Behind.\"]"));
}

#[test]
fn imports_are_found_beside_the_file_and_in_the_package() {
    let orders = file(
        "import \"line.proto\"; import \"common/money.proto\";
         service Orders { rpc Get(Line) returns (money.Amount); }",
    );
    let line = file("message Line { string sku = 1; }");
    let money = "syntax = \"proto3\"; package shop.money; message Amount { int64 cents = 1; }";
    let package = tempfile::tempdir().expect("a folder");
    for folder in ["proto", "common"] {
        std::fs::create_dir(package.path().join(folder)).expect("a folder");
    }
    for (name, text) in [
        ("proto/orders.proto", &*orders),
        ("proto/line.proto", &line),
        ("common/money.proto", money),
    ] {
        std::fs::write(package.path().join(name), text).expect("a file");
    }
    let mut item: ItemTrait = syn::parse_quote! { trait Orders {} };
    let options = Options::default();
    let given = given(&mut item, package.path(), "proto/orders.proto", &options);
    let given = given.expect("it is a service");
    assert!(given.types.to_string().contains("struct Amount"));
    let sources = given.sources.to_string();
    for path in ["\"/proto/orders.proto\"", "\"/proto/line.proto\"", "\"/common/money.proto\""] {
        assert!(sources.contains(path), "{sources}");
    }
    assert!(!sources.contains(package.path().to_str().expect("Unicode")), "a path of this machine");
}

#[test]
fn what_no_service_can_have_is_refused_with_the_remedy() {
    let rpc = |rpc: &str, more: &str| refused(&format!("service Orders {{ {rpc} }} {more}"));
    let get = "rpc Get(A) returns (A);";
    for (message, why) in [
        (rpc("rpc Get(stream A) returns (A);", "message A {}"), "leave `stream` out"),
        (rpc("rpc Get(A) returns (stream A);", "message A {}"), "leave `stream` out"),
        (refused("service Shop {} message A {}"), "name the trait as one of `Shop`"),
        (refused("message A {}"), "has no service: add `service Orders"),
        (rpc(get, "message A { B b = 1; }"), "orders.proto:3:"),
        (rpc(get, "message A {"), "reached end of file"),
        (rpc(get, "message A { string self = 1; }"), "shop.A.self has no name that a field"),
        (rpc("rpc Self(A) returns (A);", "message A {}"), "rpc Self has no name"),
        (rpc("rpc Get(Result) returns (Result);", "message Result {}"), "the type `Result`"),
        (
            rpc(
                "rpc Get(Orders2) returns (OrdersClient);",
                "message Orders2 {} message OrdersClient {}",
            ),
            "`OrdersClient`",
        ),
        (
            rpc("rpc Get(A.B) returns (A_B);", "message A { message B {} } message A_B {}"),
            "both be the type `AB`",
        ),
        (rpc(get, "message A { E e = 1; } enum E { E_X = 0; X = 1; }"), "both be the variant `X`"),
    ] {
        assert!(message.contains(why), "{message}");
    }
    let import = "import \"google/protobuf/timestamp.proto\";";
    let time = format!(
        "{import} service Orders {{ {get} }} message A {{ google.protobuf.Timestamp t = 1; }}"
    );
    assert!(refused(&time).contains("use a message of your own"));
    let old = "syntax = \"proto2\"; service Orders { rpc Get(A) returns (A); } message A {}";
    let old = fill(&[("proto/orders.proto", old)], "").err().expect("it is refused");
    assert!(old.contains("is no proto3"), "{old}");
    let none = fill(&[], "").err().expect("there is no file");
    assert!(none.contains("there is no such file"), "{none}");
    let mut full: ItemTrait = syn::parse_quote! { trait Orders { fn get(&self); } };
    let refused = given(&mut full, Path::new("."), "orders.proto", &Options::default());
    assert!(refused.err().expect("it has methods").contains("leave the trait empty"));
}
