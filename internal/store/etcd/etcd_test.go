package etcd

import (
	"flag"
	"os"
	"testing"

	"github.com/ibwarden/ibwarden/test/need"
	"github.com/ibwarden/ibwarden/test/storetest"
)

// TestMain lets more tests run at once than there are processors: they mostly wait.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func TestContract(t *testing.T) {
	need.Long(t, "all that a store promises; other stores promise it in make test")
	t.Parallel()
	storetest.Run(t, startCluster(t).place)
}
