package main

import (
	"bytes"
	"cmp"
	"errors"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"slices"
)

// shrink cuts off what is empty below a picture, and gives it a palette of its
// most frequent colours: letters on white need no more.
func shrink(data []byte) ([]byte, error) {
	whole, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	area := whole.Bounds()
	const margin = 16 // pixels that stay below
	area.Max.Y = min(area.Max.Y, lastRow(whole)+margin)
	counts := map[color.Color]int{}
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			counts[whole.At(x, y)]++
		}
	}
	if len(counts) < 2 {
		return nil, errors.New("nothing is on it")
	}
	const most = 64 // colours
	frequent := slices.SortedFunc(maps.Keys(counts), func(a, b color.Color) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(packed(a), packed(b)))
	})
	small := image.NewPaletted(area, frequent[:min(most, len(frequent))])
	draw.Draw(small, area, whole, area.Min, draw.Src)
	var b bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	err = encoder.Encode(&b, small)
	return b.Bytes(), err
}

// lastRow is below the lowest pixel that is not of the background.
func lastRow(img image.Image) int {
	area := img.Bounds()
	background := img.At(area.Min.X, area.Max.Y-1)
	for y := area.Max.Y - 1; y >= area.Min.Y; y-- {
		for x := area.Min.X; x < area.Max.X; x++ {
			if img.At(x, y) != background {
				return y + 1
			}
		}
	}
	return area.Min.Y
}

func packed(c color.Color) uint64 {
	r, g, b, a := c.RGBA()
	return uint64(r)<<48 | uint64(g)<<32 | uint64(b)<<16 | uint64(a)
}
