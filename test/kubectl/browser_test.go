package kubectl

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
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
	file, err := filepath.Abs(filepath.Join(pages, "checkout.html"))
	require.NoError(t, err)
	address := "file://" + filepath.ToSlash(file)

	// The first and the last occurrence of each series of the example, in minutes.
	const span = 91.0
	bars := []struct{ from, to float64 }{{0, 0}, {1, 1}, {11, 39}, {19, span}, {19.85, 19.85}, {20, span}, {51, 66}}
	for _, test := range []struct {
		width  int64
		scheme string
	}{{1280, "light"}, {1280, "dark"}, {390, "light"}, {390, "dark"}} {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: test.scheme}},
		})
		require.NoError(t, err)
		require.NoError(t, chromedp.Do(ctx, chromedp.EmulateViewport(test.width, 1000), chromedp.Navigate(address)))
		d, err := chromedp.Run(ctx, chromedp.Evaluate[drawing](geometry))
		require.NoError(t, err)
		screenshot, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
		require.NoError(t, err)
		if *keep != "" {
			require.NoError(t, os.WriteFile(filepath.Join(*keep, fmt.Sprintf("%d-%s.png", test.width, test.scheme)), screenshot, 0o644))
		}
		where := []any{"%d pixels, %s", test.width, test.scheme}
		assert.EqualValues(t, test.width, d.Width, where...)
		assert.LessOrEqual(t, d.ScrollWidth, d.Width, where...)
		assert.Empty(t, d.Cut, where...)
		assert.Zero(t, d.Overlaps, where...)
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
		picture, err := png.Decode(bytes.NewReader(screenshot))
		require.NoError(t, err)
		assert.Equal(t, int(test.width), picture.Bounds().Dx(), where...)
		corner := brightness(picture, picture.Bounds().Max.Sub(image.Pt(2, 2)))
		assert.Equal(t, test.scheme == "light", corner > 128, "%d pixels, %s: brightness %d", test.width, test.scheme, corner)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, request := range requests {
		assert.Equal(t, address, request)
	}
	assert.NotEmpty(t, requests)
}

func brightness(picture image.Image, at image.Point) uint8 {
	gray, _ := color.GrayModel.Convert(picture.At(at.X, at.Y)).(color.Gray)
	return gray.Y
}
