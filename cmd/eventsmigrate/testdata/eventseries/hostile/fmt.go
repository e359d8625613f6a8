package hostile

import "fmt" // only for Sprintf

func (c *controller) sprintf(reason string) {
	c.Event(nil, "Normal", reason, fmt.Sprintf("a %s", reason))
}
