package servicecmd

import "github.com/spf13/cobra"

// Commands are those of the top level that speak to a service.
func Commands() []*cobra.Command { return whole(commands()...) }

func commands() []*cobra.Command {
	return []*cobra.Command{Partition(), Tenant(), Port(), Drain(), History(), Rollback(), Approval(), Status(), Top(), Store()}
}

// Shows are those below `ibwarden show` that list what a service knows.
func Shows() []*cobra.Command { return whole(shows()...) }

func shows() []*cobra.Command { return []*cobra.Command{Events(), Sweeps(), Matrix()} }

// Console is `ibwarden show console`.
func Console() *cobra.Command { return whole(console())[0] }

// Export is `ibwarden policy export`.
func Export() *cobra.Command { return whole(export())[0] }

// Store is `ibwarden store`.
func Store() *cobra.Command {
	return group("store backup|restore", "Write the store of a service to a file, and read it back", Backup(), Restore())
}
