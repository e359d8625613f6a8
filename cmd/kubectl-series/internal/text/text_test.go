package text

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/eventseries/eventseries/series"
)

func TestText(t *testing.T) {
	now := time.Date(2026, 11, 22, 7, 0, 0, 0, time.UTC)
	for _, test := range []struct{ got, want string }{
		{Clean(" a\t b\r\n\nc "), "a b c"},
		{Clean("\x1b[31mred\x07 \u202eabc\x00"), "�[31mred� �abc�"},
		{Clean("größer 日本 👍"), "größer 日本 👍"},
		{Clean("👩\u200d🚀 می\u200cخواهم"), "👩\u200d🚀 می\u200cخواهم"},
		{Clean("a\u007fb\u009bc\u0085d\u2028e"), "a�b�c�d e"},
		{Pad("👩\u200d🚀", 3), "👩\u200d🚀 "},
		{Pad("👍🏽", 3), "👍🏽 "},
		{Cut("👩\u200d🚀 abc", 4), "👩\u200d🚀 …"},
		{Cut("👨\u200d👩\u200d👧 abc", 2), "…"},
		{Pad("👨\u200d👩\u200d👧\u200d👦🇩🇪", 5), "👨\u200d👩\u200d👧\u200d👦🇩🇪 "},
		{Pad("＾￣゛", 7), "＾￣゛ "},
		{Pad("^˘¨", 4), "^˘¨ "},
		{Clean("\xff"), "�"},
		{Cut("größer", 6), "größer"},
		{Cut("größer", 5), "größ…"},
		{Cut("größer", 1), "…"},
		{Cut("größer", 0), ""},
		{Cut("日本語", 5), "日本…"},
		{Cut("日本語", 4), "日…"},
		{CutMiddle("Pod/web-6d4cf9b7c-9tq8d", 16), "Pod/web…7c-9tq8d"},
		{CutMiddle("größer 日本語", 8), "grö…本語"},
		{CutMiddle("größer", 6), "größer"},
		{CutMiddle("größer", 2), "g…"},
		{CutMiddle("größer", 0), ""},
		{Pad("日本", 6), "日本  "},
		{Pad("abc", 2), "abc"},
		{Age(now.Add(-90*time.Second), now), "90s"},
		{Age(now.Add(-5*time.Hour), now), "5h"},
		{Age(now.Add(time.Minute), now), "0s"},
		{Age(now.Add(time.Hour), now), "in 60m"},
		{Age(time.Time{}, now), "-"},
		{Age(time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), now), "in >292y"},
		{Rate(0), "-"},
		{Rate(-1), "-"},
		{Rate(123.4), "123/s"},
		{Rate(2.54), "2.5/s"},
		{Rate(0.999), "1/s"},
		{Rate(0.2), "12/m"},
		{Rate(1.0 / 3600), "1/h"},
		{Rate(1.0 / 7200), "12/d"},
		{Rate(1e-6), "0.1/d"},
		{Object(series.Reference{Kind: "Pod", Namespace: "shop", Name: "a"}, "shop"), "Pod/a"},
		{Object(series.Reference{Kind: "Pod", Namespace: "shop", Name: "a"}, "default"), "shop/Pod/a"},
		{Object(series.Reference{Kind: "Pod", Name: "a", FieldPath: "spec.containers{app}"}, ""), "Pod/a{app}"},
		{Object(series.Reference{Kind: "Pod", Name: "a", FieldPath: "spec"}, ""), "Pod/a{spec}"},
		{Object(series.Reference{APIVersion: "v1", Namespace: "shop"}, "default"), "-"},
		{Count(0), "0"},
		{Count(-999), "-999"},
		{Count(-123456), "-123,456"},
		{Count(1234567), "1,234,567"},
		{Plural(1, "Event"), "1 Event"},
		{Plural(2000, "Event"), "2,000 Events"},
	} {
		assert.Equal(t, test.want, test.got)
	}
	assert.Equal(t, []string{"a b", "c"}, Lines("a  b\r\n\n c\n"))
}
