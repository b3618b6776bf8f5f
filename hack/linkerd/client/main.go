// Command client asks a Destination server by Linkerd's own Go bindings and prints each answer as a line of JSON:
// {"message": …} for what came, {"code": …, "text": …} for how the stream ended.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	pb "github.com/linkerd/linkerd2-proxy-api/go/destination"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

type arguments struct {
	address, method, path, contextToken, scheme, ca string
}

func main() {
	var asked arguments
	flag.StringVar(&asked.address, "address", "", "HOST:PORT of the server")
	flag.StringVar(&asked.method, "method", "get", "get or getProfile")
	flag.StringVar(&asked.path, "path", "", "what is asked about")
	flag.StringVar(&asked.contextToken, "context-token", "", "where the client is")
	flag.StringVar(&asked.scheme, "scheme", "k8s", "as the request's")
	flag.StringVar(&asked.ca, "ca", "", "file with the authority that the server must be of; empty: plain text")
	flag.Parse()
	if err := run(asked); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(asked arguments) error {
	transport := insecure.NewCredentials()
	if asked.ca != "" {
		var err error
		if transport, err = credentials.NewClientTLSFromFile(asked.ca, ""); err != nil {
			return err
		}
	}
	connection, err := grpc.NewClient(asked.address, grpc.WithTransportCredentials(transport))
	if err != nil {
		return err
	}
	defer connection.Close()
	client := pb.NewDestinationClient(connection)
	request := &pb.GetDestination{Scheme: asked.scheme, Path: asked.path, ContextToken: asked.contextToken}
	// In the environment, where other users of the host can't read it.
	ctx := context.Background()
	if token := os.Getenv("LINKERD_CLIENT_BEARER"); token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
	}
	switch asked.method {
	case "get":
		stream, err := client.Get(ctx, request)
		return printAll(stream, err)
	case "getProfile":
		stream, err := client.GetProfile(ctx, request)
		return printAll(stream, err)
	default:
		return fmt.Errorf("-method must be get or getProfile, not %q", asked.method)
	}
}

func printAll[M any, P interface {
	*M
	proto.Message
}](stream grpc.ServerStreamingClient[M], err error) error {
	for err == nil {
		var message *M
		if message, err = stream.Recv(); err != nil {
			break
		}
		text, failure := protojson.Marshal(P(message))
		if failure != nil {
			return failure
		}
		if failure := printLine(map[string]any{"message": json.RawMessage(text)}); failure != nil {
			return failure
		}
	}
	end := status.Convert(ending(err))
	return printLine(map[string]any{"code": end.Code().String(), "text": end.Message()})
}

// A stream that the server ends with OK is an end of file here.
func ending(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func printLine(value any) error {
	return json.NewEncoder(os.Stdout).Encode(value)
}
