// The files of the inspector, as they were built: read once, by exact name. What is not a file of it, and not under /v1, is its first
// page, which finds its own way. Without a build there is a short text instead.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { COMPRESSED_BYTES_MIN, compress, type Encoding } from './compress.ts'

/** Nothing of another origin is loaded, sent to, or framed; texts never become code. */
export const CSP = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  "connect-src 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "form-action 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ')

const MEDIA: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.json': 'application/json',
  '.webmanifest': 'application/manifest+json',
  '.txt': 'text/plain; charset=utf-8',
  '.woff2': 'font/woff2',
}

export const SAFE: Readonly<Record<string, string>> = {
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
}

type Page = {
  readonly bytes: Buffer
  readonly media: string
  readonly hashed: boolean
  /** Made when it is asked for first. */
  readonly compressed: Map<Encoding, Promise<Buffer>>
}

/** Pictures and fonts of these kinds are compressed already. */
const IS_TEXT = /^(text\/|image\/svg|application\/)/

/** The inspector, where it was built. */
export function pagesIn(): string | null {
  const folder = fileURLToPath(new URL('../web', import.meta.url))
  return existsSync(join(folder, 'index.html')) ? folder : null
}

export class Pages {
  readonly #files: ReadonlyMap<string, Page>

  /** `base` is where the server is mounted, such as `/terret`: its first page asks for all others there. */
  constructor(folder: string | null, base = '') {
    this.#files = folder === null ? new Map() : filesIn(folder, base)
  }

  get built(): boolean {
    return this.#files.has('/index.html')
  }

  /** Only for GET and HEAD, and never under /v1. */
  async answer(path: string, response: ServerResponse, head: boolean, encoding: Encoding | null): Promise<void> {
    // A page of its own has no dots in its name, but for that of a session: the id of a child has one.
    const isPage = path.startsWith('/s/') || !path.includes('.')
    const file = this.#files.get(path) ?? (isPage ? this.#files.get('/index.html') : undefined)
    const headers = { ...SAFE, 'content-security-policy': CSP }
    if (!file) {
      const text = this.built
        ? 'There is no such file.\n'
        : 'terret serves its sessions under /v1. This build has no pages.\n'
      const status = this.built || path !== '/' ? 404 : 200
      response.writeHead(status, { ...headers, 'content-type': MEDIA['.txt'] }).end(head ? '' : text)
      return
    }
    const cache = file.hashed ? 'public, max-age=31536000, immutable' : 'no-cache'
    const isCompressed = encoding !== null && file.bytes.length >= COMPRESSED_BYTES_MIN && IS_TEXT.test(file.media)
    const bytes = isCompressed ? await compressedOf(file, encoding) : file.bytes
    const encoded = isCompressed ? { 'content-encoding': encoding } : {}
    const about = { 'content-type': file.media, 'content-length': bytes.length, 'cache-control': cache }
    response.writeHead(200, { ...headers, ...about, ...encoded, vary: 'accept-encoding' }).end(head ? '' : bytes)
  }
}

function compressedOf({ bytes, compressed }: Page, encoding: Encoding): Promise<Buffer> {
  const made = compressed.get(encoding) ?? compress(bytes, encoding)
  compressed.set(encoding, made)
  return made
}

function filesIn(folder: string, base: string): ReadonlyMap<string, Page> {
  const files = new Map<string, Page>()
  for (const entry of entriesOf(folder)) {
    const media = MEDIA[extname(entry)]
    if (media === undefined) continue
    const hashed = /-[\w-]{8,}\.\w+$/.test(entry)
    const bytes = readFileSync(join(folder, entry))
    const own = entry === 'index.html' ? placed(bytes, base) : bytes
    files.set(`/${entry.replaceAll('\\', '/')}`, { bytes: own, media, hashed, compressed: new Map() })
  }
  return files
}

/** Files are named from the page on: the page may be at any depth below the base. */
function placed(page: Buffer, base: string): Buffer {
  const text = page.toString().replaceAll(/(href|src)="\.\//g, `$1="${base}/`)
  return Buffer.from(text.replace('<title>', `<meta name="terret-base" content="${base}" />\n    <title>`))
}

function entriesOf(folder: string): readonly string[] {
  try {
    return readdirSync(folder, { recursive: true, encoding: 'utf8' })
  } catch {
    return []
  }
}
