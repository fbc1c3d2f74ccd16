package storetest

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/ibwarden/ibwarden/test/need"
)

// Members is how many members a cluster has.
const Members = 3

// StartWait is how long a cluster may take to come up, on a machine that is busy.
const StartWait = 60 * time.Second

// Cluster is a real etcd cluster on loopback addresses: the program IBWARDEN_ETCD, or etcd.
// Clients reach each member through a proxy, which can be cut.
type Cluster struct {
	T       testing.TB
	program string
	args    []string
	dirs    [Members]string
	ports   [Members]struct{ client, peer int }
	cmds    [Members]*exec.Cmd
	logs    [Members]*bytes.Buffer
	Proxies [Members]*Proxy
}

// StartEtcd starts a cluster, which ends with the test, and waits until it is healthy. args are for each member.
func StartEtcd(t testing.TB, args ...string) *Cluster {
	t.Helper()
	program := os.Getenv("IBWARDEN_ETCD")
	if program == "" {
		program = need.Program(t, "etcd")
	}
	c := &Cluster{T: t, program: program, args: args}
	dir, err := os.MkdirTemp("", "ibwarden-etcd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	for i := range Members {
		c.dirs[i] = filepath.Join(dir, fmt.Sprint("m", i))
		c.ports[i].client, c.ports[i].peer = freePort(t), freePort(t)
		c.Proxies[i] = newProxy(t, fmt.Sprint("127.0.0.1:", c.ports[i].client))
	}
	for i := range Members {
		c.Start(i)
	}
	t.Cleanup(func() {
		for i := range Members {
			c.Kill(i)
			if t.Failed() && testing.Verbose() {
				t.Logf("member %d:\n%s", i, c.logs[i])
			}
		}
	})
	c.Healthy()
	return c
}

// Ports of members: below those that the system gives to connections, so that a port
// which is free stays free while its member does not run.
const (
	lowPort  = 12_000
	highPort = 32_000
)

var taken sync.Map // ports of members of this process

func freePort(t testing.TB) int {
	t.Helper()
	for range 1000 {
		port := lowPort + rand.IntN(highPort-lowPort)
		if _, double := taken.LoadOrStore(port, true); double {
			continue
		}
		if l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port)); err == nil {
			l.Close()
			return port
		}
	}
	t.Fatalf("no free port from %d to %d", lowPort, highPort)
	return 0
}

// Start starts a member, again if it was killed.
func (c *Cluster) Start(i int) {
	c.T.Helper()
	var initial []string
	for j := range Members {
		initial = append(initial, fmt.Sprintf("m%d=http://127.0.0.1:%d", j, c.ports[j].peer))
	}
	client, peer := fmt.Sprint("http://127.0.0.1:", c.ports[i].client), fmt.Sprint("http://127.0.0.1:", c.ports[i].peer)
	args := append([]string{
		"--name", fmt.Sprint("m", i), "--data-dir", c.dirs[i], "--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", strings.Join(initial, ","),
		"--heartbeat-interval", "50", "--election-timeout", "500", "--logger", "zap", "--log-level", "error",
	}, c.args...)
	c.logs[i] = &bytes.Buffer{}
	cmd := exec.Command(c.program, args...)
	cmd.Stdout, cmd.Stderr = c.logs[i], c.logs[i]
	cmd.SysProcAttr = endsWithParent()
	if err := cmd.Start(); err != nil {
		c.T.Fatal(err)
	}
	c.cmds[i] = cmd
}

// Kill kills a member with SIGKILL.
func (c *Cluster) Kill(i int) {
	if c.cmds[i] == nil {
		return
	}
	c.cmds[i].Process.Kill()
	c.cmds[i].Wait()
	c.cmds[i] = nil
}

// Signal sends a member a signal.
func (c *Cluster) Signal(i int, s syscall.Signal) {
	c.T.Helper()
	if err := c.cmds[i].Process.Signal(s); err != nil {
		c.T.Fatal(err)
	}
}

// Client talks to one member directly.
func (c *Cluster) Client(i int) *clientv3.Client {
	c.T.Helper()
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{c.Direct()[i]}, Logger: zap.NewNop(), DialTimeout: time.Second,
	})
	if err != nil {
		c.T.Fatal(err)
	}
	return client
}

// Healthy waits until every member that runs answers reads of a majority.
func (c *Cluster) Healthy() {
	c.T.Helper()
	until := time.Now().Add(StartWait)
	for i := range Members {
		if c.cmds[i] == nil {
			continue
		}
		client := c.Client(i)
		for {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			_, err := client.Get(ctx, "health")
			cancel()
			if err == nil {
				break
			}
			if time.Now().After(until) {
				c.T.Fatalf("member %d: %v\n%s", i, err, c.logs[i])
			}
			time.Sleep(50 * time.Millisecond)
		}
		client.Close()
	}
}

// Leader is the member that leads.
func (c *Cluster) Leader() int {
	c.T.Helper()
	for until := time.Now().Add(StartWait); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		for i := range Members {
			if c.cmds[i] == nil {
				continue
			}
			client := c.Client(i)
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			r, err := client.Status(ctx, client.Endpoints()[0])
			cancel()
			client.Close()
			if err == nil && r.Leader == r.Header.MemberId {
				return i
			}
		}
	}
	c.T.Fatal("no member leads")
	return 0
}

// Follow has another member lead if this one does.
func (c *Cluster) Follow(i int) {
	c.T.Helper()
	if c.Leader() != i {
		return
	}
	from, to := c.Client(i), c.Client((i+1)%Members)
	defer from.Close()
	defer to.Close()
	ctx, cancel := context.WithTimeout(context.Background(), StartWait)
	defer cancel()
	r, err := to.Status(ctx, to.Endpoints()[0])
	if err == nil {
		_, err = from.MoveLeader(ctx, r.Header.MemberId)
	}
	if err != nil {
		c.T.Fatal(err)
	}
}

// Endpoints are the URLs of the members, through their Proxies.
func (c *Cluster) Endpoints() []string {
	var out []string
	for _, p := range c.Proxies {
		out = append(out, "http://"+p.listener.Addr().String())
	}
	return out
}

// Direct are the URLs of the members, past their proxies.
func (c *Cluster) Direct() []string {
	var out []string
	for i := range c.ports {
		out = append(out, fmt.Sprint("http://127.0.0.1:", c.ports[i].client))
	}
	return out
}

// Proxy passes connections on to a member until it is cut: then connections stay, and
// nothing comes through, as when a cable is pulled.
type Proxy struct {
	listener net.Listener
	mu       sync.Mutex
	flow     *sync.Cond
	cut      bool
	Lose     atomic.Bool // ends the connection instead of passing on the next answer
}

func newProxy(t testing.TB, to string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: l}
	p.flow = sync.NewCond(&p.mu)
	t.Cleanup(func() { l.Close(); p.Set(false) })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				in.Close()
				continue
			}
			go p.pass(in, out, false)
			go p.pass(out, in, true)
		}
	}()
	return p
}

func (p *Proxy) pass(from, to net.Conn, answers bool) {
	defer from.Close()
	defer to.Close()
	buf := make([]byte, 1<<16)
	for {
		n, err := from.Read(buf)
		p.mu.Lock()
		for p.cut {
			p.flow.Wait()
		}
		p.mu.Unlock()
		if answers && n > 0 && p.Lose.CompareAndSwap(true, false) {
			return
		}
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// Set cuts the proxy, or joins it again.
func (p *Proxy) Set(cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = cut
	p.flow.Broadcast()
}

// Cut cuts the ways to all members, or joins them again.
func (c *Cluster) Cut(all bool) {
	for _, p := range c.Proxies {
		p.Set(all)
	}
}
