package leasepage

// Path is where the page is.
func (w *Writer) Path() string { return w.path }
