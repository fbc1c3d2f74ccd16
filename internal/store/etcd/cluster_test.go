package etcd

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

	"github.com/ibwarden/ibwarden/internal/store"
	"github.com/ibwarden/ibwarden/internal/store/storetest"
	"github.com/ibwarden/ibwarden/test/need"
)

// members of a cluster.
const members = 3

// startWait is how long a cluster may take to come up, on a machine that is busy.
const startWait = 60 * time.Second

// cluster is a real etcd cluster on loopback addresses: the program IBWARDEN_ETCD, or etcd.
// Clients reach each member through a proxy, which can be cut.
type cluster struct {
	t       testing.TB
	program string
	args    []string
	dirs    [members]string
	ports   [members]struct{ client, peer int }
	cmds    [members]*exec.Cmd
	logs    [members]*bytes.Buffer
	proxies [members]*proxy
}

func startCluster(t testing.TB, args ...string) *cluster {
	t.Helper()
	program := os.Getenv("IBWARDEN_ETCD")
	if program == "" {
		program = need.Program(t, "etcd")
	}
	c := &cluster{t: t, program: program, args: args}
	dir, err := os.MkdirTemp("", "ibwarden-etcd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	for i := range members {
		c.dirs[i] = filepath.Join(dir, fmt.Sprint("m", i))
		c.ports[i].client, c.ports[i].peer = freePort(t), freePort(t)
		c.proxies[i] = newProxy(t, fmt.Sprint("127.0.0.1:", c.ports[i].client))
	}
	for i := range members {
		c.start(i)
	}
	t.Cleanup(func() {
		for i := range members {
			c.kill(i)
			if t.Failed() && testing.Verbose() {
				t.Logf("member %d:\n%s", i, c.logs[i])
			}
		}
	})
	c.healthy()
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

// start starts a member, again if it was killed.
func (c *cluster) start(i int) {
	c.t.Helper()
	var initial []string
	for j := range members {
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
		c.t.Fatal(err)
	}
	c.cmds[i] = cmd
}

// kill kills a member with SIGKILL.
func (c *cluster) kill(i int) {
	if c.cmds[i] == nil {
		return
	}
	c.cmds[i].Process.Kill()
	c.cmds[i].Wait()
	c.cmds[i] = nil
}

func (c *cluster) signal(i int, s syscall.Signal) {
	c.t.Helper()
	if err := c.cmds[i].Process.Signal(s); err != nil {
		c.t.Fatal(err)
	}
}

// client talks to one member directly.
func (c *cluster) client(i int) *clientv3.Client {
	c.t.Helper()
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{fmt.Sprint("http://127.0.0.1:", c.ports[i].client)}, Logger: zap.NewNop(), DialTimeout: time.Second,
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return client
}

// healthy waits until every member that runs answers reads of a majority.
func (c *cluster) healthy() {
	c.t.Helper()
	until := time.Now().Add(startWait)
	for i := range members {
		if c.cmds[i] == nil {
			continue
		}
		client := c.client(i)
		for {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			_, err := client.Get(ctx, "health")
			cancel()
			if err == nil {
				break
			}
			if time.Now().After(until) {
				c.t.Fatalf("member %d: %v\n%s", i, err, c.logs[i])
			}
			time.Sleep(50 * time.Millisecond)
		}
		client.Close()
	}
}

// leader is the member that leads.
func (c *cluster) leader() int {
	c.t.Helper()
	for until := time.Now().Add(startWait); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		for i := range members {
			if c.cmds[i] == nil {
				continue
			}
			client := c.client(i)
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			r, err := client.Status(ctx, client.Endpoints()[0])
			cancel()
			client.Close()
			if err == nil && r.Leader == r.Header.MemberId {
				return i
			}
		}
	}
	c.t.Fatal("no member leads")
	return 0
}

func (c *cluster) endpoints() []string {
	var out []string
	for _, p := range c.proxies {
		out = append(out, "http://"+p.listener.Addr().String())
	}
	return out
}

func (c *cluster) open(t testing.TB, prefix string) *Store {
	t.Helper()
	s, err := Open(t.Context(), Config{Endpoints: c.endpoints(), Prefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// hasty opens the store of a place with short time-outs.
func (c *cluster) hasty(t testing.TB, p storetest.Place) *Store {
	t.Helper()
	s := p.Open(t).(*Store)
	s.config.ReadTimeout, s.config.CommitTimeout = 1500*time.Millisecond, 3*time.Second
	return s
}

var places atomic.Int64

// place is a store with a prefix of its own.
func (c *cluster) place(testing.TB) storetest.Place {
	prefix := fmt.Sprintf("/test/%d/", places.Add(1))
	return storetest.Place{
		Open:   func(t testing.TB) store.Store { t.Helper(); return c.open(t, prefix) },
		Renew:  c.place,
		Shared: true,
	}
}

// proxy passes connections on to a member until it is cut: then connections stay, and
// nothing comes through, as when a cable is pulled.
type proxy struct {
	listener net.Listener
	mu       sync.Mutex
	flow     *sync.Cond
	cut      bool
	lose     atomic.Bool // ends the connection instead of passing on the next answer
}

func newProxy(t testing.TB, to string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l}
	p.flow = sync.NewCond(&p.mu)
	t.Cleanup(func() { l.Close(); p.set(false) })
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

func (p *proxy) pass(from, to net.Conn, answers bool) {
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
		if answers && n > 0 && p.lose.CompareAndSwap(true, false) {
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

// set cuts the proxy, or joins it again.
func (p *proxy) set(cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = cut
	p.flow.Broadcast()
}

func (c *cluster) cut(all bool) {
	for _, p := range c.proxies {
		p.set(all)
	}
}
