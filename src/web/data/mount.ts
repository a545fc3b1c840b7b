// The path that the server is mounted under, such as `/terret`, which it writes into the first page. Empty at the root
// of a host, and in a file.
export const BASE = document.querySelector<HTMLMetaElement>('meta[name="terret-base"]')?.content ?? ''
