// Where the server is mounted, such as `/terret`: it writes that into the first page. Empty at the root of a host, and in a file.
export const BASE = document.querySelector<HTMLMetaElement>('meta[name="terret-base"]')?.content ?? ''
