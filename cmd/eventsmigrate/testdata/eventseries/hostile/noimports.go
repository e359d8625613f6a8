package hostile // without imports

func (c *controller) value() any {
	return c.Event
}
