// Adds 1 to the group `counter` in a loop, over stock gRPC.
//
//	client [--calls N | --seconds S] [--no-keys] [--tls DIR --authority NAME] TARGET
//
// TARGET is xds:///counter, HOST:PORT or unix:PATH. It calls until N calls, S seconds or SIGTERM,
// and prints one line of JSON. Failures, and calls of more than 5 ms, are told on the
// error stream.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	_ "google.golang.org/grpc/xds"
)

// jsonCodec has calls travel as application/grpc+json: the gateway needs no other sign.
type jsonCodec struct{}

func (jsonCodec) Name() string                        { return "json" }
func (jsonCodec) Marshal(value any) ([]byte, error)   { return json.Marshal(value) }
func (jsonCodec) Unmarshal(data []byte, to any) error { return json.Unmarshal(data, to) }

func main() {
	calls := flag.Int("calls", math.MaxInt, "end after so many calls")
	seconds := flag.Float64("seconds", 1e9, "end after so many seconds")
	deadline := flag.Int("deadline-ms", 5000, "the deadline of a call")
	noKeys := flag.Bool("no-keys", false, "calls are sent at most once, and may fail")
	folder := flag.String("tls", "", "the folder of a client, made by `steadfast init`")
	authority := flag.String("authority", "", "the name in the nodes' certificates")
	flag.Parse()

	options := []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}
	if *folder != "" {
		options = []grpc.DialOption{
			grpc.WithTransportCredentials(credentials.NewTLS(tlsOf(*folder, *authority))),
		}
	}
	if !*noKeys {
		options = append(options, grpc.WithUnaryInterceptor(Keys()))
	}
	options = append(options, grpc.WithDefaultCallOptions(
		grpc.ForceCodec(jsonCodec{}), grpc.WaitForReady(true)))
	channel, err := grpc.NewClient(flag.Arg(0), options...)
	if err != nil {
		log.Fatal(err)
	}
	defer channel.Close()

	stopped, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	until := time.Now().Add(time.Duration(*seconds * float64(time.Second)))
	within := time.Duration(*deadline) * time.Millisecond
	var waits []float64
	failed, codes, gateway := 0, map[string]int{}, ""
	for len(waits) < *calls && time.Now().Before(until) && stopped.Err() == nil {
		began := time.Now()
		var sum int64
		var at peer.Peer
		ctx, cancel := context.WithTimeout(context.Background(), within)
		err := channel.Invoke(ctx, "/counter/add", []int{1}, &sum, grpc.Peer(&at))
		cancel()
		if err != nil {
			failed++
			codes[status.Code(err).String()]++
			fmt.Fprintf(os.Stderr, "failed %s\n", err)
		}
		wait := float64(time.Since(began).Microseconds()) / 1000
		waits = append(waits, wait)
		if wait > 5 {
			fmt.Fprintf(os.Stderr, "slow %d %.1f\n", began.UnixMilli(), wait)
		}
		if at.Addr != nil && at.Addr.String() != gateway {
			gateway = at.Addr.String()
			fmt.Fprintf(os.Stderr, "peer %d %s\n", time.Now().UnixMilli(), gateway)
		}
	}
	slices.Sort(waits)
	result := map[string]any{"calls": len(waits), "failed": failed, "codes": codes}
	if len(waits) > 0 {
		result["p50_us"] = math.Round(waits[len(waits)/2] * 1000)
		result["longest_ms"] = waits[len(waits)-1]
	}
	line, _ := json.Marshal(result)
	fmt.Println(string(line))
}

// tlsOf shows the client's certificate, and expects the nodes' common name.
func tlsOf(folder, authority string) *tls.Config {
	find := func(pattern string) string {
		found, _ := filepath.Glob(filepath.Join(folder, pattern))
		if len(found) == 0 {
			log.Fatalf("no %s in %s: name the folder of a client", pattern, folder)
		}
		return found[0]
	}
	pem, err := os.ReadFile(find("authority.pem"))
	if err != nil {
		log.Fatal(err)
	}
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(pem)
	own, err := tls.LoadX509KeyPair(find("client-*.pem"), find("client-*.key"))
	if err != nil {
		log.Fatal(err)
	}
	return &tls.Config{
		RootCAs:      authorities,
		Certificates: []tls.Certificate{own},
		ServerName:   authority,
	}
}
