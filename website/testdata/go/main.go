// Makes a partition with the client that oapi-codegen generates. Usage: main URL TOKEN.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"

	"github.com/ibwarden/ibwarden/website/ibwarden"
)

func main() {
	ctx := context.Background()
	token := func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+os.Args[2])
		return nil
	}
	c, err := ibwarden.NewClientWithResponses(os.Args[1]+"/api/v1", ibwarden.WithRequestEditorFn(token))
	must(err)

	tenants, err := c.ListTenantsWithResponse(ctx, &ibwarden.ListTenantsParams{})
	must(err)
	for _, t := range tenants.JSON200.Items {
		fmt.Println("tenant", t.Name, t.Keys.First, t.Ports)
	}

	// The same request twice: the second changes nothing.
	absent, key := "*", "first-try"
	proved := ibwarden.CreatePartitionParamsWaitProved
	params := &ibwarden.CreatePartitionParams{IfNoneMatch: &absent, IdempotencyKey: &key, Wait: &proved}
	training := ibwarden.NewPartitionBody{Name: "training"}
	made, err := c.CreatePartitionWithResponse(ctx, params, training)
	must(err)
	fmt.Println(made.StatusCode(), made.JSON201.Words[0])
	again, err := c.CreatePartitionWithResponse(ctx, params, training)
	must(err)
	fmt.Println(again.StatusCode(), "repeated", *again.JSON201.Repeated, again.JSON201.Revision == made.JSON201.Revision)

	wait := ibwarden.AddMembersParamsWaitProved
	added, err := c.AddMembersWithResponse(ctx, *made.JSON201.Pkey, &ibwarden.AddMembersParams{Wait: &wait}, ibwarden.MembersBody{
		Members: []ibwarden.Joined{{Port: "0x000000000010001d", Membership: ibwarden.JoinedMembershipFull}},
	})
	must(err)
	fmt.Println(added.JSON200.Words[0])
	fmt.Println("outcome", added.JSON200.Outcome.State, *added.JSON200.Outcome.Verdict)

	// What is refused is a problem, with its reason in a word and the fields at fault.
	foreign := "0x0010"
	refused, err := c.CreatePartitionWithResponse(ctx, &ibwarden.CreatePartitionParams{}, ibwarden.NewPartitionBody{Name: "mine", Pkey: &foreign})
	must(err)
	problem(refused.ApplicationproblemJSON403)
	other, err := c.CreatePartitionWithResponse(ctx, params, ibwarden.NewPartitionBody{Name: "other"})
	must(err)
	problem(other.ApplicationproblemJSON409)
	stale := `"99"`
	late, err := c.DeletePartitionWithResponse(ctx, *made.JSON201.Pkey, &ibwarden.DeletePartitionParams{IfMatch: &stale})
	must(err)
	problem(late.ApplicationproblemJSON412)
}

func problem(p *ibwarden.Problem) { fmt.Println("problem", p.Status, p.Reason, (*p.Errors)[0].Field) }

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
