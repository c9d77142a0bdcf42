// Makes the calls that its input names, and tells how each ended: see ask.py.
package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// raw has messages travel as they are.
type raw struct{}

func (raw) Name() string                        { return "raw" }
func (raw) Marshal(value any) ([]byte, error)   { return value.([]byte), nil }
func (raw) Unmarshal(data []byte, to any) error { *to.(*[]byte) = data; return nil }

type told struct {
	Code     uint32 `json:"code"`
	Text     string `json:"text"`
	Executed string `json:"executed,omitempty"`
	Cut      string `json:"cut,omitempty"`
	Error    string `json:"error,omitempty"`
}

func ask(channel *grpc.ClientConn, path, message string, headers map[string]string) told {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var answer []byte
	var trailers metadata.MD
	err := channel.Invoke(metadata.NewOutgoingContext(ctx, metadata.New(headers)), path,
		[]byte(message), &answer, grpc.Trailer(&trailers), grpc.ForceCodec(raw{}))
	first := func(name string) string {
		if values := trailers.Get(name); len(values) > 0 {
			return values[0]
		}
		return ""
	}
	return told{
		Code:     uint32(status.Code(err)),
		Text:     status.Convert(err).Message(),
		Executed: first("steadfast-executed"),
		Cut:      first("steadfast-cut"),
		Error:    base64.StdEncoding.EncodeToString([]byte(first("steadfast-error-bin"))),
	}
}

func main() {
	channel, err := grpc.NewClient(os.Args[1],
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	defer channel.Close()
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var path, message string
		var headers map[string]string
		if err := json.Unmarshal(lines.Bytes(), &[]any{&path, &message, &headers}); err != nil {
			log.Fatal(err)
		}
		line, _ := json.Marshal(ask(channel, path, message, headers))
		fmt.Println(string(line))
	}
	if err := lines.Err(); err != nil {
		log.Fatal(err)
	}
}
