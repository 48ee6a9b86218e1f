//go:build system

package systemtest

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// interruptedPull releases an image of two layers and loses the registry in the
// middle of the second: what runs goes on, what is on its way is told, and when
// the registry is back only the second layer is fetched.
func (b *box) interruptedPull(reg *registry) {
	b.f.Helper()
	program, err := app()
	if err != nil {
		b.f.Fatal(err)
	}
	_, layers := reg.put("web", "4", "four", map[string][]byte{"app": program}, map[string][]byte{"padding": bytes.Repeat([]byte("four"), layerSize)})
	began := strings.TrimSpace(b.Run("systemctl", "show", "web.service", "--property=InvocationID", "--value"))
	half := make(chan string, 1) // the status of then
	reg.set(false)
	reg.atHalfOf(layers[1], func() {
		ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
		defer cancel()
		for !b.stored(ctx, layers[0]) && ctx.Err() == nil {
			time.Sleep(waitEvery)
		}
		reg.set(true)
		status, _ := b.Try(ctx, "gitopsd", "agent", "status") // its code is about other things
		half <- status
		panic(http.ErrAbortHandler)
	})
	b.next("v4.0.0", strings.ReplaceAll(webSpec(reg.addr+"/web:4", ""), "retries: 0", "retries: 9, backoff: {base: 1s, cap: 2s}"))
	told := ""
	b.f.wait("half of the second layer", func() error {
		select {
		case told = <-half:
			return nil
		default:
			return fmt.Errorf("the layers were asked for %d and %d times", reg.asks(layers[0]), reg.asks(layers[1]))
		}
	})
	b.f.wait("the agent says that the registry is down", func() error {
		if !strings.Contains(b.log(), "image "+reg.addr+"/web:4: ") {
			return fmt.Errorf("it says\n%s", b.log())
		}
		return nil
	})
	b.must("without a registry", b.serves("two"), b.prints(began, "systemctl", "show", "web.service", "--property=InvocationID", "--value"))
	reg.set(false)
	b.f.is("gw-1", "Current", "v4.0.0")
	b.must("when the registry is back", b.serves("four"))
	if want := "Preparing, PRE-CHECK: pulling image 1 of 1: " + reg.addr + "/web:4"; !strings.Contains(told, want) {
		b.f.Errorf("during the pull the status was\n%s\nwithout %q", told, want)
	}
	if first, second := reg.asks(layers[0]), reg.asks(layers[1]); first != 1 || second < 2 {
		b.f.Errorf("the layers were asked for %d and %d times, want the first once and the second again", first, second)
	}
}

// stored says whether podman has a layer.
func (b *box) stored(ctx context.Context, layer string) bool {
	_, err := b.Try(ctx, "grep", "--quiet", layer, "/var/lib/containers/storage/overlay-layers/layers.json")
	return err == nil
}
