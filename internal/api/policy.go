package api

import (
	"context"
	"net/http"

	"github.com/ibwarden/ibwarden/internal/api/listen"
	"github.com/ibwarden/ibwarden/internal/policy/policyfile"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// PolicyFile is a policy file that was applied.
type PolicyFile struct {
	Name      string `json:"name" maxLength:"255" minLength:"1" doc:"for people, and for the format: .yaml, .yml or .conf; else the text decides"`
	Text      string `json:"text" maxLength:"1000000"`
	AllowBoth bool   `json:"allow_both,omitempty" doc:"in a partitions.conf, =both gives the full and the limited key"`
}

// Export is the policy that is in force, as a file.
type Export struct {
	Name string `json:"name"`
	Text string `json:"text" doc:"YAML"`
}

var policyKey = (&resource.File{}).Key()

func (a *api) policy() {
	type one struct {
		IfNone string `header:"If-None-Match" maxLength:"1000" doc:"ETag that the caller has"`
	}
	register(a, notModified(operation(http.MethodGet, "/policy", "get-policy", "The policy file that was applied; for the provider")),
		func(ctx context.Context, in *one) (*Output[Single[PolicyFile]], error) {
			if err := provider(ctx); err != nil {
				return nil, err
			}
			return readOne(ctx, a, in.IfNone, func(s *resource.State) (PolicyFile, uint64, error) {
				f := s.File()
				if f == nil {
					return PolicyFile{}, 0, problem(http.StatusNotFound, string(resource.NotFound), "no policy file was applied: the policy is the one that the service was started with")
				}
				_, revision := s.Object(policyKey)
				return PolicyFile{f.Name, f.Text, f.AllowBoth}, revision, nil
			})
		})
	type put struct {
		WriteParams
		Body PolicyFile
	}
	register(a, operation(http.MethodPut, "/policy", "put-policy", "Apply a policy file: what it does not name of others' it does not touch; the provider may"),
		func(ctx context.Context, in *put) (*ChangedOutput, error) {
			if err := provider(ctx); err != nil {
				return nil, err
			}
			f := resource.File{Name: in.Body.Name, Text: in.Body.Text, AllowBoth: in.Body.AllowBoth}
			out, err := a.write(ctx, &in.WriteParams, resource.PutFile{File: f}, policyKey, listen.Condition.Replaces)
			if out != nil && out.Location != "" {
				out.Location = Prefix + "/policy"
			}
			return out, err
		})
	type none struct{}
	register(a, operation(http.MethodGet, "/export", "get-export", "The policy that is in force, with the partitions of the API, as a file; for the provider"),
		func(ctx context.Context, _ *none) (*Output[Single[Export]], error) {
			if err := provider(ctx); err != nil {
				return nil, err
			}
			return readOne(ctx, a, "", func(s *resource.State) (Export, uint64, error) {
				return Export{"ibwarden.yaml", string(policyfile.WriteYAML(s.Policy()))}, s.Last(), nil
			})
		})
}
