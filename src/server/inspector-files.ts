// The built files of the inspector, read once and served by exact name. Other paths outside /v1 get the first page,
// which routes by itself. Without a build a short text is served.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { COMPRESSED_BYTES_MIN, compressBytes, type AnswerEncoding } from './compress-answer.ts'

/** Pages load, send to and are framed by no other origin, and text never becomes code. */
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

type InspectorFile = {
  readonly bytes: Buffer
  readonly media: string
  readonly hashed: boolean
  /** Compressed at the first request. */
  readonly compressed: Map<AnswerEncoding, Promise<Buffer>>
}

/** Other media types, such as pictures and fonts, are already compressed. */
const IS_TEXT = /^(text\/|image\/svg|application\/)/

/** The folder of the built inspector; null if there is none. */
export function findInspectorFolder(): string | null {
  const folder = fileURLToPath(new URL('../web', import.meta.url))
  return existsSync(join(folder, 'index.html')) ? folder : null
}

export class InspectorFiles {
  readonly #files: ReadonlyMap<string, InspectorFile>

  /**
   * `base` is the path that the server is mounted under, such as `/terret`: the first page loads all other files from
   * there.
   */
  constructor(folder: string | null, base = '') {
    this.#files = folder === null ? new Map() : readInspectorFiles(folder, base)
  }

  get built(): boolean {
    return this.#files.has('/index.html')
  }

  /** Answers only GET and HEAD, and never under /v1. */
  async answer(path: string, response: ServerResponse, head: boolean, encoding: AnswerEncoding | null): Promise<void> {
    // Page paths have no dots, except for the page of a session: the id of a child contains one.
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
    const bytes = isCompressed ? await compressFile(file, encoding) : file.bytes
    const encoded = isCompressed ? { 'content-encoding': encoding } : {}
    const about = { 'content-type': file.media, 'content-length': bytes.length, 'cache-control': cache }
    response.writeHead(200, { ...headers, ...about, ...encoded, vary: 'accept-encoding' }).end(head ? '' : bytes)
  }
}

function compressFile({ bytes, compressed }: InspectorFile, encoding: AnswerEncoding): Promise<Buffer> {
  const made = compressed.get(encoding) ?? compressBytes(bytes, encoding)
  compressed.set(encoding, made)
  return made
}

function readInspectorFiles(folder: string, base: string): ReadonlyMap<string, InspectorFile> {
  const files = new Map<string, InspectorFile>()
  for (const entry of listEntries(folder)) {
    const media = MEDIA[extname(entry)]
    if (media === undefined) continue
    const hashed = /-[\w-]{8,}\.\w+$/.test(entry)
    const bytes = readFileSync(join(folder, entry))
    const own = entry === 'index.html' ? placeUnderBase(bytes, base) : bytes
    files.set(`/${entry.replaceAll('\\', '/')}`, { bytes: own, media, hashed, compressed: new Map() })
  }
  return files
}

/** Makes relative file addresses start at the base, because the page may be opened at any depth. */
function placeUnderBase(page: Buffer, base: string): Buffer {
  const text = page.toString().replaceAll(/(href|src)="\.\//g, `$1="${base}/`)
  return Buffer.from(text.replace('<title>', `<meta name="terret-base" content="${base}" />\n    <title>`))
}

function listEntries(folder: string): readonly string[] {
  try {
    return readdirSync(folder, { recursive: true, encoding: 'utf8' })
  } catch {
    return []
  }
}
