package kubectl

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var keep = flag.String("screenshots", "", "keep the screenshots of the page in this directory")

// pages are the golden files of the timeline: an incident of 91 minutes with a bar in each
// state.
var pages = filepath.Join(module, "internal", "timeline", "testdata")

// geometry returns what the browser draws, in fractions of the plot: where each bar is,
// and what is cut off.
const geometry = `(() => {
	const box = e => e.getBoundingClientRect();
	const plots = [...document.querySelectorAll(".row .plot")];
	const cut = [...document.querySelectorAll("body *")].filter(e => {
		if (getComputedStyle(e).display === "none" || e.closest("svg, style")) return false;
		return box(e).right > innerWidth + 0.5 || box(e).left < -0.5 || e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0 && getComputedStyle(e).overflowX === "hidden";
	}).map(e => e.outerHTML.slice(0, 120));
	return {
		width: innerWidth,
		scrollWidth: document.documentElement.scrollWidth,
		cut,
		bars: plots.map(plot => {
			const bar = plot.querySelector(".bar"), p = box(plot), b = box(bar);
			return {left: (b.left - p.left) / p.width, right: (b.right - p.left) / p.width, height: b.height, classes: bar.className};
		}),
		overlaps: [...document.querySelectorAll(".scale .tick")].filter(e => getComputedStyle(e).display !== "none")
			.map(box).sort((a, b) => a.left - b.left).filter((b, i, all) => i > 0 && b.left < all[i - 1].right).length,
		background: getComputedStyle(document.body).backgroundColor,
		color: getComputedStyle(document.body).color,
	};
})()`

type drawing struct {
	Width       float64  `json:"width"`
	ScrollWidth float64  `json:"scrollWidth"`
	Cut         []string `json:"cut"`
	Bars        []struct {
		Left, Right, Height float64
		Classes             string
	} `json:"bars"`
	Overlaps   int    `json:"overlaps"`
	Background string `json:"background"`
	Color      string `json:"color"`
}

func browser(t *testing.T) context.Context {
	t.Helper()
	var path string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Skip("no Chromium: install the Debian package chromium to run this test")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox)
	allocator, stop := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), options...) // the context of a test ends before its cleanup
	t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(func() {
		cancel() // stops Chromium
	})
	ctx, cancel = context.WithTimeout(ctx, patience)
	t.Cleanup(cancel)
	return ctx
}

// page opens a page in a width and a color scheme, and returns what is drawn.
func page(ctx context.Context, t *testing.T, name string, width int64, scheme string) (drawing, image.Image) {
	t.Helper()
	picture := open(ctx, t, name, width, scheme)
	d, err := chromedp.Run(ctx, chromedp.Evaluate[drawing](geometry))
	require.NoError(t, err)
	return d, picture
}

// open opens a page or an image. It keeps the screenshot if the flag says so.
func open(ctx context.Context, t *testing.T, name string, width int64, scheme string) image.Image {
	t.Helper()
	_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
	require.NoError(t, err)
	require.NoError(t, chromedp.Do(ctx, chromedp.EmulateViewport(width, 1000), chromedp.Navigate(address(t, name))))
	screenshot, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	require.NoError(t, err)
	if *keep != "" {
		require.NoError(t, os.WriteFile(filepath.Join(*keep, fmt.Sprintf("%s-%d-%s.png", name, width, scheme)), screenshot, 0o644))
	}
	picture, err := png.Decode(bytes.NewReader(screenshot))
	require.NoError(t, err)
	return picture
}

// address returns the URL of a golden file.
func address(t *testing.T, name string) string {
	t.Helper()
	file, err := filepath.Abs(filepath.Join(pages, name))
	require.NoError(t, err)
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(file)}).String() // the path can contain spaces
}

// readers are the widths and color schemes of those who open a page.
var readers = []struct {
	width  int64
	scheme string
}{{1280, "light"}, {1280, "dark"}, {390, "light"}, {390, "dark"}}

func TestPageInBrowser(t *testing.T) {
	ctx := browser(t)
	var requests []string
	var mu sync.Mutex
	require.NoError(t, chromedp.Listen(ctx, func(event any) {
		if sent, ok := event.(*network.EventRequestWillBeSent); ok {
			mu.Lock()
			defer mu.Unlock()
			requests = append(requests, sent.Request.URL)
		}
	}))
	_, err := chromedp.Call(ctx, network.Enable, network.EnableParams{})
	require.NoError(t, err)

	// The first and the last occurrence of each series of the example, in minutes.
	const span = 91.0
	bars := []struct{ from, to float64 }{{0, 0}, {1, 1}, {11, 39}, {19, span}, {19.85, 19.85}, {20, span}, {51, 66}}
	for _, test := range readers {
		d, picture := page(ctx, t, "checkout.html", test.width, test.scheme)
		where := []any{"%d pixels, %s", test.width, test.scheme}
		d.check(t, test.width, where...)
		require.Len(t, d.Bars, len(bars), where...)
		for i, bar := range bars {
			left, right := d.Bars[i].Left, d.Bars[i].Right
			if strings.Contains(d.Bars[i].Classes, "singleton") {
				left = (left + right) / 2 // a circle around the time
				right = left
			}
			assert.InDelta(t, bar.from/span, left, 0.005, where...)
			assert.InDelta(t, bar.to/span, right, 0.005, where...)
			assert.Greater(t, d.Bars[i].Height, 10.0, where...)
		}
		assert.Equal(t, int(test.width), picture.Bounds().Dx(), where...)
		corner := brightness(picture, picture.Bounds().Max.Sub(image.Pt(2, 2)))
		assert.Equal(t, test.scheme == "light", corner > 128, "%d pixels, %s: brightness %d", test.width, test.scheme, corner)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, request := range requests {
		assert.Equal(t, address(t, "checkout.html"), request)
	}
	assert.NotEmpty(t, requests)
}

// check requires that nothing is cut off, and that no labels of the axis collide.
func (d *drawing) check(t *testing.T, width int64, where ...any) {
	t.Helper()
	assert.EqualValues(t, width, d.Width, where...)
	assert.LessOrEqual(t, d.ScrollWidth, d.Width, where...)
	assert.Empty(t, d.Cut, where...)
	assert.Zero(t, d.Overlaps, where...)
}

// TestLongPageInBrowser opens the page of 300 series, and that of an object that has been quiet for
// long, whose axis breaks.
func TestLongPageInBrowser(t *testing.T) {
	ctx := browser(t)
	for _, test := range readers {
		where := []any{"%d pixels, %s", test.width, test.scheme}
		d, picture := page(ctx, t, "groups.html", test.width, test.scheme)
		d.check(t, test.width, where...)
		if test.width == 1280 {
			assert.LessOrEqual(t, picture.Bounds().Dy(), 3000, where...)
		}
		t.Logf("300 series on %d pixels, %s: %d pixels high", test.width, test.scheme, picture.Bounds().Dy())
		rows, err := chromedp.Run(ctx, chromedp.Evaluate[int](`document.querySelector("details").open = true, [...document.querySelectorAll("details[open] ol > .row")].filter(e => e.getBoundingClientRect().height > 0).length`))
		require.NoError(t, err)
		assert.Equal(t, 40, rows, where...)

		for _, width := range []int64{test.width, 730, 1010} { // also the narrowest windows that have a label at the break
			d, _ = page(ctx, t, "quiet.html", width, test.scheme)
			d.check(t, width, where...)
			assert.InDelta(t, 0.84, d.Bars[1].Right, 0.02, where...)
		}
		for _, image := range []string{"checkout.svg", "quiet.svg", "groups.svg"} {
			assert.Equal(t, int(test.width), open(ctx, t, image, test.width, test.scheme).Bounds().Dx(), image)
		}
	}
}

func brightness(picture image.Image, at image.Point) uint8 {
	gray, _ := color.GrayModel.Convert(picture.At(at.X, at.Y)).(color.Gray)
	return gray.Y
}
