package web

import (
	"compress/gzip"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

var handler = Handler("", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))

// asked is what the console answers to a request.
func asked(t *testing.T, method, path string, header map[string]string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(method, path, nil)
	for k, v := range header {
		r.Header.Set(k, v)
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w.Result()
}

// TestHandler: the console answers below its prefix and nowhere else, only to reading, and
// always with the policy for its content.
func TestHandler(t *testing.T) {
	for _, x := range []struct {
		method, path string
		status       int
	}{
		{"GET", "/", http.StatusSeeOther},
		{"GET", "/console", http.StatusSeeOther},
		{"GET", "/console/", http.StatusOK},
		{"HEAD", "/console/", http.StatusOK},
		{"GET", "/console/app.js", http.StatusOK},
		{"GET", "/console/pages/fabric.js", http.StatusOK},
		{"GET", "/console/nothing.js", http.StatusNotFound},
		{"GET", "/console/pages/", http.StatusNotFound},
		{"GET", "/console/../web.go", http.StatusNotFound},
		{"GET", "/console/%2e%2e/web.go", http.StatusNotFound},
		{"POST", "/console/", http.StatusMethodNotAllowed},
		{"POST", "/", http.StatusMethodNotAllowed},
		{"DELETE", "/console/app.js", http.StatusMethodNotAllowed},
		{"GET", "/api/v1/status", http.StatusTeapot},
		{"GET", "/consoles/", http.StatusTeapot},
		{"POST", "/ufmRest/resources/pkeys", http.StatusTeapot},
	} {
		answer := asked(t, x.method, x.path, nil)
		if answer.StatusCode != x.status {
			t.Errorf("%s %s: %d, want %d", x.method, x.path, answer.StatusCode, x.status)
		}
		if got := answer.Header.Get("Content-Security-Policy"); (got == policy) != (x.status != http.StatusTeapot) {
			t.Errorf("%s %s: Content-Security-Policy %q", x.method, x.path, got)
		}
	}
}

// TestUnchanged: a file that the browser has is not sent again, and gzip is what it stands for.
func TestUnchanged(t *testing.T) {
	whole := asked(t, "GET", "/console/app.js", nil)
	text, _ := io.ReadAll(whole.Body)
	etag := whole.Header.Get("ETag")
	if etag == "" || len(text) == 0 {
		t.Fatalf("ETag %q, %d bytes", etag, len(text))
	}
	if again := asked(t, "GET", "/console/app.js", map[string]string{"If-None-Match": `"other", ` + etag}); again.StatusCode != http.StatusNotModified {
		t.Errorf("status %d", again.StatusCode)
	}
	small := asked(t, "GET", "/console/app.js", map[string]string{"Accept-Encoding": "br, gzip;q=0.5"})
	if small.Header.Get("Content-Encoding") != "gzip" {
		t.Fatal(small.Header)
	}
	z, err := gzip.NewReader(small.Body)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(z); err != nil || string(got) != string(text) {
		t.Errorf("%v, %d bytes of %d", err, len(got), len(text))
	}
	if none := asked(t, "GET", "/console/app.js", map[string]string{"Accept-Encoding": "gzip;q=0"}); none.Header.Get("Content-Encoding") != "" {
		t.Error("gzip for one who does not take it")
	}
}

// TestModules: the page names every module, and each of them is there.
func TestModules(t *testing.T) {
	text, _ := io.ReadAll(asked(t, "GET", Prefix, nil).Body)
	named := regexp.MustCompile(`rel="modulepreload" href="([^"]+)"`).FindAllStringSubmatch(string(text), -1)
	if len(named) < 10 || strings.Contains(string(text), modules) {
		t.Errorf("%d modules are named in %s", len(named), text)
	}
	for _, m := range named {
		if got := asked(t, "GET", Prefix+m[1], nil).StatusCode; got != http.StatusOK {
			t.Errorf("%s: %d", m[1], got)
		}
	}
}

// unsafe are ways to make text into markup or code, and addresses of other hosts.
var unsafe = regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|DOMParser|createContextualFragment|srcdoc|\son[a-z]+="|<style|style="|https?://|//[a-z0-9-]+\.[a-z]`)

// svgName is the name of the language of drawings, which nobody asks for anything.
const svgName = "http://www.w3.org/2000/svg"

// TestNothingFromElsewhere: no file of the console has an address of another host, or a way
// to make text into markup, or anything in line that the policy would forbid.
func TestNothingFromElsewhere(t *testing.T) {
	seen := 0
	err := fs.WalkDir(embedded, "assets", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		seen++
		content, err := fs.ReadFile(embedded, name)
		text := strings.ReplaceAll(string(content), svgName, "")
		if found := unsafe.FindString(text); found != "" {
			t.Errorf("%s has %q", name, found)
		}
		return err
	})
	if err != nil || seen < 5 {
		t.Errorf("%v, %d files", err, seen)
	}
	for _, bad := range []string{`x.innerHTML = y`, `<p onclick="f()">`, `fetch('https://example.com')`} {
		if !unsafe.MatchString(bad) {
			t.Errorf("%q passes", bad)
		}
	}
}
