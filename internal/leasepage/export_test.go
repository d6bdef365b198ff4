package leasepage

// Now reads CLOCK_BOOTTIME, in nanoseconds.
func Now() int64 { return readBoottime() }

// Path is where the page is.
func (w *Writer) Path() string { return w.path }
