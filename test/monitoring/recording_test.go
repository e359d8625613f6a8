package monitoring

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRecordingIsSmallAndWhole(t *testing.T) {
	info, err := os.Stat(fromRoot(recordingFile))
	require.NoError(t, err)
	assert.Less(t, info.Size(), int64(300_000))
	r, err := readRecording(fromRoot(recordingFile))
	require.NoError(t, err)
	assert.Greater(t, r.to.Sub(r.from).Seconds(), 60.0)
	assert.Greater(t, len(r.instances()), 10)
}

func TestRecordingsThatAreNone(t *testing.T) {
	for name, text := range map[string]string{
		"empty":        "# EOF\n",
		"no time":      "# TYPE a gauge\na 1\n# EOF\n",
		"cut off":      "# TYPE a gauge\na 1 1\n",
		"time is back": "# TYPE a gauge\na 1 2\na 1 1\n# EOF\n",
		"nonsense":     "{\n",
	} {
		assert.Error(t, new(recording).parse([]byte(text)), name)
	}
	path := filepath.Join(t.TempDir(), "recording")
	_, err := readRecording(path)
	assert.Error(t, err, "it is not there")
	require.NoError(t, os.WriteFile(path, []byte("# EOF\n"), 0o600))
	_, err = readRecording(path)
	assert.Error(t, err, "it is not compressed")

	r := new(recording)
	require.NoError(t, r.parse([]byte("# TYPE a gauge\na{x=\"y\"} 1 1\na{x=\"y\"} 2 3\na{x=\"z\"} 2 2\n# EOF\n")))
	assert.Len(t, r.samples, 2)
	assert.EqualValues(t, 1, r.from.Unix())
	assert.EqualValues(t, 3, r.to.Unix())
}

func TestPicture(t *testing.T) {
	r, err := readRecording(fromRoot(recordingFile))
	require.NoError(t, err)
	svg, err := picture(t.Context(), r)
	require.NoError(t, err)
	assert.Less(t, len(svg), 150_000)
	decoder := xml.NewDecoder(bytes.NewReader(svg))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			require.NoError(t, err)
		}
	}
	for _, row := range pictured {
		for _, p := range row {
			assert.Contains(t, string(svg), p.title)
		}
	}
}
