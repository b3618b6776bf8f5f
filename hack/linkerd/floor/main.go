// Command floor serves one set of endpoints by Linkerd's own Go bindings and the gRPC library of its controller, with nothing
// behind: no store, no look-ups, one message shared by all streams. So it costs less than any controller built of these parts.
// It takes {"type":"change",…} as lines of JSON and answers in lines.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"

	pb "github.com/linkerd/linkerd2-proxy-api/go/destination"
	netpb "github.com/linkerd/linkerd2-proxy-api/go/net"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
)

// As many as a stream of Linkerd's controller holds before it gives the stream up.
const queued = 100

type server struct {
	pb.UnimplementedDestinationServer
	mutex     sync.Mutex
	endpoints []*pb.WeightedAddr
	ready     []bool
	queues    map[chan *pb.Update]struct{}
}

func main() {
	count, err := strconv.Atoi(os.Args[1])
	if err != nil {
		fail(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fail(err)
	}
	s := newServer(count)
	g := grpc.NewServer()
	pb.RegisterDestinationServer(g, s)
	go func() { fail(g.Serve(listener)) }()
	answer(map[string]any{"type": "up", "port": listener.Addr().(*net.TCPAddr).Port})
	asked := bufio.NewScanner(os.Stdin)
	for asked.Scan() {
		var change struct {
			Pod   int
			Ready bool
		}
		if err := json.Unmarshal(asked.Bytes(), &change); err != nil {
			fail(err)
		}
		at := monotonic()
		s.change(change.Pod, change.Ready)
		answer(map[string]any{"type": "changed", "atNs": strconv.FormatInt(at, 10)})
	}
}

func newServer(count int) *server {
	s := &server{queues: map[chan *pb.Update]struct{}{}}
	for index := range count {
		ip := uint32(192)<<24 | 2<<8 | uint32(index%10+1)
		s.endpoints = append(s.endpoints, &pb.WeightedAddr{
			Addr: &netpb.TcpAddress{
				Ip:   &netpb.IPAddress{Ip: &netpb.IPAddress_Ipv4{Ipv4: ip}},
				Port: uint32(20_000 + index),
			},
			Weight: 10_000,
			MetricLabels: map[string]string{
				"pod":           fmt.Sprintf("web-%d", index),
				"node":          fmt.Sprintf("node-%d", index%10),
				"workload":      "web",
				"zone":          fmt.Sprintf("zone-%d", index%10%3),
				"zone_locality": "unknown",
			},
		})
		s.ready = append(s.ready, true)
	}
	return s
}

func (s *server) Get(_ *pb.GetDestination, stream pb.Destination_GetServer) error {
	queue := make(chan *pb.Update, queued)
	s.mutex.Lock()
	var all []*pb.WeightedAddr
	for index, endpoint := range s.endpoints {
		if s.ready[index] {
			all = append(all, endpoint)
		}
	}
	s.queues[queue] = struct{}{}
	s.mutex.Unlock()
	defer func() {
		s.mutex.Lock()
		delete(s.queues, queue)
		s.mutex.Unlock()
	}()
	if err := stream.Send(add(all)); err != nil {
		return err
	}
	for {
		select {
		case update := <-queue:
			if err := stream.Send(update); err != nil {
				return err
			}
		case <-stream.Context().Done():
			return nil
		}
	}
}

func (s *server) change(pod int, ready bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.ready[pod] = ready
	endpoint := s.endpoints[pod]
	update := add([]*pb.WeightedAddr{endpoint})
	if !ready {
		gone := &pb.AddrSet{Addrs: []*netpb.TcpAddress{endpoint.Addr}}
		update = &pb.Update{Update: &pb.Update_Remove{Remove: gone}}
	}
	for queue := range s.queues {
		queue <- update
	}
}

func add(endpoints []*pb.WeightedAddr) *pb.Update {
	labels := map[string]string{"namespace": "shop", "service": "web"}
	set := &pb.WeightedAddrSet{Addrs: endpoints, MetricLabels: labels}
	return &pb.Update{Update: &pb.Update_Add{Add: set}}
}

// On the clock that all processes share, in nanoseconds.
func monotonic() int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		fail(err)
	}
	return now.Nano()
}

func answer(value any) {
	if err := json.NewEncoder(os.Stdout).Encode(value); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
