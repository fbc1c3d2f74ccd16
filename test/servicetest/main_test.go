package servicetest

import (
	"os"
	"testing"

	"github.com/ibwarden/ibwarden/test/need"
)

func TestMain(m *testing.M) { os.Exit(need.Main(m)) }
