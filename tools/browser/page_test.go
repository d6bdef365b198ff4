// Package browser looks at the status page as people do: in a browser, at the width of a desktop
// and of a phone. It needs Chromium, and a doyen that it builds.
package browser

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/device"
)

var shots = flag.String("shots", "", "write screenshots into this directory")

const patience = 60 * time.Second

// build makes doyen, and skips if there is no Chromium.
func build(t *testing.T) string {
	t.Helper()
	if !slices.ContainsFunc([]string{"chromium", "chromium-browser", "google-chrome", "headless-shell"}, func(b string) bool { _, err := exec.LookPath(b); return err == nil }) {
		t.Skip("Chromium is missing: install the package chromium; .ci/run does")
	}
	doyen := filepath.Join(t.TempDir(), "doyen")
	if out, err := exec.Command("go", "build", "-C", "../..", "-o", doyen, "./cmd/doyen").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return doyen
}

// host is an agent of the cluster under test.
type host struct {
	name, page string
	command    *exec.Cmd
}

// stop kills the agent, and returns when it is gone.
func (h host) stop() {
	_ = h.command.Process.Kill()
	_ = h.command.Wait()
}

// cluster starts three agents on loopback, of which the first leads.
func cluster(t *testing.T, doyen string) []host {
	t.Helper()
	var ports [9]int
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		ports[i] = l.Addr().(*net.TCPAddr).Port
		l.Close()
	}
	dir := t.TempDir()
	var all []host
	for i, name := range []string{"a", "b", "c"} {
		page := fmt.Sprintf("127.0.0.1:%d", ports[6+i])
		c := exec.Command(doyen, "agent", "--name", name, "--data-dir", filepath.Join(dir, name), "--socket", filepath.Join(dir, name+".sock"),
			"--gossip-port", fmt.Sprint(ports[i]), "--peer-port", fmt.Sprint(ports[3+i]), "--http", page, "--keeper=false",
			"--priority", fmt.Sprint(300-i), "--voters", "a,b,c", "--join", fmt.Sprintf("127.0.0.1:%d", ports[0]))
		var log bytes.Buffer
		c.Stderr = &log
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		h := host{name, "http://" + page + "/", c}
		t.Cleanup(func() {
			h.stop()
			if t.Failed() {
				t.Logf("agent %s:\n%s", name, log.String())
			}
		})
		all = append(all, h)
	}
	limit := time.Now().Add(patience)
	for i := 0; i < len(all); { // each knows who leads
		ctx, cancel := context.WithDeadline(t.Context(), limit)
		request, _ := http.NewRequestWithContext(ctx, http.MethodGet, all[i].page+"leader", nil)
		response, err := http.DefaultClient.Do(request)
		if err == nil {
			var body bytes.Buffer
			_, _ = body.ReadFrom(response.Body)
			response.Body.Close()
			if strings.TrimSpace(body.String()) == "a" {
				i++
			}
		}
		cancel()
		if time.Now().After(limit) {
			t.Fatal("nobody leads")
		}
	}
	return all
}

// look runs actions in a browser, and keeps a screenshot if asked to.
func look(t *testing.T, ctx context.Context, name string, actions ...chromedp.Action) {
	t.Helper()
	var shot []byte
	if err := chromedp.Run(ctx, append(actions, chromedp.FullScreenshot(&shot, 100))...); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if *shots != "" {
		if err := os.WriteFile(filepath.Join(*shots, name+".png"), shot, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheStatusPageInABrowser(t *testing.T) {
	agents := cluster(t, build(t))
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.NoSandbox, chromedp.WSURLReadTimeout(patience))
	allocator, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 4*patience)
	t.Cleanup(cancel)

	var complaints []string
	chromedp.ListenTarget(ctx, func(ev any) {
		if s := fmt.Sprintf("%T %+v", ev, ev); strings.Contains(s, "EventExceptionThrown") || strings.Contains(s, "Content Security Policy") {
			complaints = append(complaints, s)
		}
	})
	text := func(selector string, want ...string) chromedp.Action {
		return chromedp.ActionFunc(func(ctx context.Context) error {
			var got string
			if err := chromedp.Text(selector, &got, chromedp.ByQuery).Do(ctx); err != nil {
				return err
			}
			for _, w := range want {
				if !strings.Contains(got, w) {
					t.Errorf("%s shows %q, not %q", selector, got, w)
				}
			}
			return nil
		})
	}
	number := func(expression string, want float64) chromedp.Action {
		return chromedp.ActionFunc(func(ctx context.Context) error {
			var got float64
			if err := chromedp.Evaluate("Number("+expression+")", &got).Do(ctx); err != nil {
				return err
			}
			if got != want {
				t.Errorf("%s is %v, not %v", expression, got, want)
			}
			return nil
		})
	}
	until := func(expression string) chromedp.Action {
		return chromedp.Poll(expression, nil, chromedp.WithPollingTimeout(patience))
	}
	const desktop, phone = 1280, 390
	fits := func(width int) chromedp.Action {
		return number(fmt.Sprintf("document.scrollingElement.scrollWidth <= %d", width), 1)
	}

	look(t, ctx, "desktop", chromedp.EmulateViewport(desktop, 900), chromedp.Navigate(agents[1].page),
		text(".who", "a"), text(".hero", "Leader of default", "for "), fits(desktop),
		number(`document.querySelectorAll("main .banner").length`, 0),
		number(`document.querySelectorAll(".hero .strip i").length > 0`, 1))
	look(t, ctx, "phone", chromedp.Emulate(device.IPhone13), chromedp.Navigate(agents[1].page), fits(phone),
		number(`getComputedStyle(document.querySelector("thead")).display === "none"`, 1))
	// A fresh picture comes in without the page being loaded again.
	look(t, ctx, "refreshed", chromedp.Evaluate(`window.stays = 1; document.querySelector("main").dataset.former = 1`, nil),
		until(`!document.querySelector("main").dataset.former`), number("window.stays", 1))
	if _, err := chromedp.RunResponse(ctx, chromedp.Click("//a[text()='c']", chromedp.BySearch)); err != nil {
		t.Fatal(err)
	}
	look(t, ctx, "linked", text("h1", "Agent c"))

	agents[0].stop()
	agents[1].stop()
	look(t, ctx, "no-quorum", until(`document.querySelector("main .banner")`), text("main .banner", "No quorum: nobody can lead.", "1 of 3 voters reachable, 2 needed"),
		until(`document.querySelector(".who").textContent === "Nobody leads"`), fits(phone))
	agents[2].stop()
	look(t, ctx, "no-answer", until(`!document.querySelector("#old").hidden`), text("#old", "This agent has not answered for"), number("document.title === 'Doyen: no answer'", 1))
	if len(complaints) > 0 {
		t.Errorf("the browser complains: %s", strings.Join(complaints, "\n"))
	}
}
