package controller

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/ibwarden/ibwarden/internal/api/client"
	"github.com/ibwarden/ibwarden/internal/api/listen"
)

// callTimeout bounds one call of the service. No call waits for a proof.
const callTimeout = 30 * time.Second

// tokenMax bounds a file with a token, in bytes.
const tokenMax = 4096

// Service is where the service is, and how to call it.
type Service struct {
	Server listen.Server
	// CA are the CAs of the server's certificate, PEM; those of the system for nil.
	CA []byte
	// TokenFile has the provider's token. It is read again for every use, so that the token
	// can be replaced. Without it the caller is whom the service takes this user for, which
	// works over a Unix socket alone.
	TokenFile string

	mu      sync.Mutex
	clients map[string]*held // by tenant; "" is the provider
}

type held struct {
	token  string
	client *client.Client
}

// provider is a client with the provider's token.
func (s *Service) provider() (*client.Client, error) {
	token := ""
	if s.TokenFile != "" {
		data, err := os.ReadFile(s.TokenFile)
		if err != nil {
			return nil, fmt.Errorf("the provider's token: %w", err)
		}
		if token = strings.TrimSpace(string(data)); token == "" || len(data) > tokenMax {
			return nil, fmt.Errorf("the provider's token: %s: want a token, in at most %d bytes", s.TokenFile, tokenMax)
		}
	} else if s.Server.Socket == "" {
		return nil, errors.New("the provider's token: want a file with it")
	}
	return s.with("", token)
}

// with is a client with a token, the same one as long as the token is the same.
func (s *Service) with(tenant, token string) (*client.Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.clients[tenant]; h != nil && h.token == token {
		return h.client, nil
	}
	c, err := client.New(s.Server, client.Options{Token: token, CA: s.CA})
	if err != nil {
		return nil, err
	}
	if s.clients == nil {
		s.clients = map[string]*held{}
	}
	s.clients[tenant] = &held{token, c}
	return c, nil
}

// forget drops the client of a tenant that is gone.
func (s *Service) forget(tenant string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.clients, tenant)
}

// get reads one object of the service.
func get[T any](ctx context.Context, c *client.Client, path string) (T, string, error) {
	ctx, stop := context.WithTimeout(ctx, callTimeout)
	defer stop()
	return client.Get[T](ctx, c, path, nil)
}
