package chaos

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/eventseries/eventseries/series"
)

func TestRegression(t *testing.T) {
	at := func(count int32, second int, state series.State) *eventsv1.Event {
		event := eventOf(0, 0, count)
		if count > 1 {
			event.Annotations = map[string]string{series.AnnotationState: state.String()}
			event.Series.LastObservedTime = metav1.NewMicroTime(time.Unix(int64(second), 0))
		}
		return &event
	}
	single := at(1, 0, series.Singleton)
	for name, tt := range map[string]struct {
		before, now *eventsv1.Event
		want        string
	}{
		"a series":          {single, at(2, 1, series.Ongoing), ""},
		"more":              {at(2, 1, series.Ongoing), at(5, 2, series.Ongoing), ""},
		"nothing":           {at(2, 1, series.Ongoing), at(2, 1, series.Ongoing), ""},
		"finished":          {at(2, 1, series.Ongoing), at(2, 1, series.Finished), ""},
		"finished twice":    {at(2, 1, series.Finished), at(2, 1, series.Finished), ""},
		"fewer":             {at(5, 1, series.Ongoing), at(4, 2, series.Ongoing), "the count went back"},
		"a singleton again": {at(2, 1, series.Ongoing), single, "the count went back"},
		"earlier":           {at(5, 2, series.Ongoing), at(6, 1, series.Ongoing), "the time went back"},
		"opened":            {at(5, 1, series.Finished), at(6, 2, series.Ongoing), "it was finished"},
		"counted on":        {at(5, 1, series.Finished), at(6, 2, series.Finished), "it was finished"},
	} {
		assert.Equal(t, tt.want, regression(tt.before, tt.now), name)
	}
}
