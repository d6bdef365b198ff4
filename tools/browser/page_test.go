// Package browser looks at the status page as people do: in a browser, at the width of a desktop
// and of a phone. It needs Chromium, and a doyen that it builds.
package browser

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"math"
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
)

var (
	shots    = flag.String("shots", "", "write screenshots into this directory")
	pictures = flag.Bool("pictures", false, "write the pictures of docs/monitoring.md again")
)

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
	name, page, socket string
	start              func(voters string)
	command            *exec.Cmd
}

// stop kills the agent, and returns when it is gone.
func (h *host) stop() {
	_ = h.command.Process.Kill()
	_ = h.command.Wait()
}

// past is what the agents find as their history: the times before now, and who led from then on.
func past(now time.Time) []byte {
	var b bytes.Buffer
	for i, c := range []struct {
		ago    time.Duration
		leader string
		reason string
		gap    time.Duration
	}{
		{3 * time.Hour, "a", "elected", 0}, {25*time.Minute + 1600*time.Millisecond, "", "lease expired", 0},
		{25 * time.Minute, "b", "elected", 1600 * time.Millisecond}, {12 * time.Minute, "", "transferred", 0}, {12*time.Minute - 4*time.Millisecond, "a", "elected", 4 * time.Millisecond},
	} {
		kind, who := "leader", any(nil)
		if c.leader == "" {
			kind = "no_leader"
		} else {
			who = map[string]string{"name": c.leader, "id": "12D3KooW" + c.leader}
		}
		line, _ := json.Marshal(map[string]any{"time": now.Add(-c.ago), "election": "default", "type": kind, "leader": who, "term": 1 + i/2, "reason": c.reason,
			"gap_ms": c.gap.Milliseconds(), "evidence": "2 of 3 voters can be reached, 2 needed"})
		b.Write(append(line, '\n'))
	}
	return b.Bytes()
}

// cluster starts three agents on loopback, of which the first leads.
func cluster(t *testing.T, doyen string) []*host {
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
	dir, err := os.MkdirTemp("/dev/shm", "doyen") // in memory, as a record has to be
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	var all []*host
	for i, name := range []string{"a", "b", "c"} {
		h := &host{name: name, page: fmt.Sprintf("http://127.0.0.1:%d/", ports[6+i]), socket: filepath.Join(dir, name+".sock")}
		data := filepath.Join(dir, name)
		if os.Mkdir(data, 0o700) != nil || os.WriteFile(filepath.Join(data, "history"), past(time.Now()), 0o600) != nil {
			t.Fatal("the past can't be written")
		}
		var log bytes.Buffer
		h.start = func(voters string) {
			h.command = exec.Command(doyen, "agent", "--name", name, "--cluster", "shop", "--data-dir", data, "--socket", h.socket,
				"--gossip-port", fmt.Sprint(ports[i]), "--peer-port", fmt.Sprint(ports[3+i]), "--http", strings.Trim(h.page, "htp:/"), "--keeper=false", "--lease", "4s", // a browser can use all of a small machine
				"--priority", fmt.Sprint(300-i), "--voters", voters, "--join", fmt.Sprintf("127.0.0.1:%d", ports[(i+1)%3]))
			h.command.Stderr = &log
			if err := h.command.Start(); err != nil {
				t.Fatal(err)
			}
		}
		h.start("a,b,c")
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

// small writes a picture with at most 256 colours. A page hardly has more.
func small(t *testing.T, path string, shot []byte) {
	t.Helper()
	full, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		t.Fatal(err)
	}
	count, bounds := map[color.Color]int{}, full.Bounds()
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			count[full.At(x, y)]++
		}
	}
	var often color.Palette
	near := func(c color.Color) bool { // reports whether a kept colour is similar
		if len(often) == 0 {
			return false
		}
		r, g, b, _ := c.RGBA()
		x, y, z, _ := often.Convert(c).RGBA()
		return math.Abs(float64(r)-float64(x))+math.Abs(float64(g)-float64(y))+math.Abs(float64(b)-float64(z)) < 24<<8
	}
	for _, c := range slices.SortedFunc(maps.Keys(count), func(a, b color.Color) int { return count[b] - count[a] }) {
		if len(often) < 256 && !near(c) {
			often = append(often, c)
		}
	}
	to := image.NewPaletted(bounds, often)
	draw.Draw(to, bounds, full, bounds.Min, draw.Src)
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, to); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// look runs actions in a browser, and keeps a screenshot if asked to.
func look(t *testing.T, ctx context.Context, name string, actions ...chromedp.Action) {
	t.Helper()
	var shot []byte
	if err := chromedp.Run(ctx, append(actions, chromedp.FullScreenshot(&shot, 100))...); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if *shots != "" {
		small(t, filepath.Join(*shots, name+".png"), shot)
	}
	if picture := filepath.Join("../../docs/pictures", name+".png"); *pictures {
		if _, err := os.Stat(picture); err == nil {
			small(t, picture, shot)
		}
	}
}

func TestTheStatusPageInABrowser(t *testing.T) {
	doyen := build(t)
	agents := cluster(t, doyen)
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
	// both looks at a page in both widths, in which it has to fit.
	both := func(name, page string, actions ...chromedp.Action) {
		look(t, ctx, name+"-desktop", append([]chromedp.Action{chromedp.EmulateViewport(desktop, 844), chromedp.Navigate(page)}, append(actions, fits(desktop))...)...)
		look(t, ctx, name+"-phone", append([]chromedp.Action{chromedp.EmulateViewport(phone, 844)}, append(actions, fits(phone))...)...)
	}
	single := func(rows string) chromedp.Action { // each row is one line of text
		return number(fmt.Sprintf(`[...document.querySelectorAll(%q)].every((r) => r.getBoundingClientRect().height < 40)`, rows), 1)
	}
	a, b, c := agents[0], agents[1], agents[2]

	both("well", b.page, until(`document.querySelector("main").textContent.includes("Asked for warnings: a, b, c")`), text("h1", "shop"), text(".who", "a"), text(".hero", "Leader of default", "for ", "could take over: b, c", "nobody for "),
		text(".quorum", "3 of 3 voters"), number(`document.title === "shop: a leads"`, 1), number(`document.querySelectorAll("main .banner").length`, 0),
		number(`document.querySelectorAll(".hero .strip .tick").length >= 2`, 1), number(`document.querySelector(".hero .strip .tick").getBoundingClientRect().width < 1`, 1),
		single("tbody tr"), number(`!document.querySelector("time").textContent.includes("UTC")`, 1))
	// The script of the page loads a new picture without reloading the page, and open details stay open.
	look(t, ctx, "refreshed", chromedp.Click("summary", chromedp.ByQuery), chromedp.Evaluate(`window.stays = 1; document.querySelector("main").dataset.former = 1`, nil),
		until(`!document.querySelector("main").dataset.former`), number("window.stays", 1), number(`document.querySelectorAll("details[open]").length`, 1))
	if _, err := chromedp.RunResponse(ctx, chromedp.Click("//a[text()='c']", chromedp.BySearch)); err != nil {
		t.Fatal(err)
	}
	look(t, ctx, "linked", text("header", "as agent c sees it"))

	// One voter is dead. Another is drained, and has a warning that only it knows.
	b.stop()
	c.stop()
	c.start("a,b")
	for limit := time.Now().Add(patience); ; { // until c serves its socket again
		out, err := exec.Command(doyen, "drain", "on", "--socket", c.socket).CombinedOutput()
		if err == nil {
			break
		}
		if time.Now().After(limit) {
			t.Fatalf("%v: %s", err, out)
		}
	}
	both("trouble", a.page, until(`["voters_differ", "b: no answer", "c: drained"].every((w) => document.querySelector("main").textContent.includes(w))`),
		text(".quorum", "2 of 3 voters", "Missing: b"), single("tbody tr"), number(`document.querySelectorAll('li a[href^="https://"]').length === document.querySelectorAll("li").length`, 1))

	a.stop()
	both("no-quorum", c.page, until(`document.querySelector("main .banner")`), text("main .banner", "No quorum: nobody can lead. Missing: a, b"),
		until(`document.querySelector(".who").textContent === "Nobody leads"`), text(".quorum", "1 of 3 voters", "reachable, 2 needed"))
	c.stop()
	look(t, ctx, "no-answer", until(`!document.querySelector("#old").hidden`), text("#old", "This agent has not answered for"), number("document.title === 'Doyen: no answer'", 1))
	if len(complaints) > 0 {
		t.Errorf("the browser complains: %s", strings.Join(complaints, "\n"))
	}
}
