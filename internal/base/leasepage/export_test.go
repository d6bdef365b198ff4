package leasepage

func (w *Writer) Path() string { return w.path }
