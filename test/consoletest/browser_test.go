package consoletest

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/ibwarden/ibwarden/test/need"
)

// patience bounds every wait for something to become true.
const patience = 30 * time.Second

func TestMain(m *testing.M) {
	status := need.Main(m)
	if endBrowser != nil {
		endBrowser()
	}
	os.Exit(status)
}

var endBrowser func()

// browser is one Chromium for all tests of the package. Each page has a browser context
// of its own in it, as if it were another person's.
var browser = sync.OnceValues(func() (context.Context, error) {
	path, err := need.Find("chromium")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "ibwarden-chromium-")
	if err != nil {
		return nil, err
	}
	options := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(path), chromedp.UserDataDir(dir), chromedp.Env("HOME=" + dir),
		chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck,
		chromedp.WSURLReadTimeout(patience),
	}
	for _, on := range []string{
		"disable-quic", "disable-background-networking", "disable-component-update", "disable-sync", "disable-extensions", "disable-dev-shm-usage",
		"disable-background-timer-throttling", "disable-renderer-backgrounding", "disable-backgrounding-occluded-windows", "hide-scrollbars", "metrics-recording-only",
	} {
		options = append(options, chromedp.Flag(on, true))
	}
	options = append(options,
		// No name leads anywhere: a page that asks another host gets nothing, whatever this
		// machine's network is.
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
		chromedp.Flag("force-color-profile", "srgb"), chromedp.Flag("lang", "en-GB"), chromedp.Flag("enable-precise-memory-info", true))
	allocated, end := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, _ := chromedp.NewContext(allocated)
	endBrowser = func() {
		_ = chromedp.Cancel(ctx) // it is killed below if it does not end by itself
		end()
		os.RemoveAll(dir)
	}
	if err := chromedp.Do(ctx); err != nil {
		endBrowser()
		endBrowser = nil
		return nil, fmt.Errorf("%s does not start: %w", path, err)
	}
	return ctx, nil
})

// chromium is the browser for a test, which is skipped where there is none.
func chromium(t testing.TB) context.Context {
	t.Helper()
	need.Program(t, "chromium")
	ctx, err := browser()
	if err != nil {
		t.Fatal(err)
	}
	return ctx
}
