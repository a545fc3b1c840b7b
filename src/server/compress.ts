// Answers in fewer bytes, for clients that say they can read them (`Accept-Encoding`). Streams of events are never compressed: a
// compressor would hold frames back until it has enough of them.
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'

export type Encoding = 'br' | 'gzip'

/** Fewer bytes than this fit into one packet whatever is done with them. */
export const COMPRESSED_BYTES_MIN = 1_024

/** What the client prefers of what we have: `br` before `gzip` where it likes both the same. Null: it wants neither. */
export function encodingFor(accepted: string | readonly string[] | undefined): Encoding | null {
  const weights = new Map<string, number>()
  for (const item of String(accepted ?? '').split(',')) {
    const [name = '', ...params] = item.split(';').map((part) => part.trim().toLowerCase())
    const q = params.find((param) => param.startsWith('q='))?.slice(2)
    const weight = q === undefined ? 1 : Number(q)
    if (name !== '') weights.set(name, Number.isFinite(weight) ? weight : 0)
  }
  const weightOf = (name: Encoding): number => weights.get(name) ?? weights.get('*') ?? 0
  const [br, gz] = [weightOf('br'), weightOf('gzip')]
  if (Math.max(br, gz) <= 0) return null
  return br >= gz ? 'br' : 'gzip'
}

const brotli = promisify(brotliCompress)
const gzipped = promisify(gzip)

/** A few milliseconds for a file of the pages. The highest qualities take seconds, and somebody waits for the first page. */
const QUALITY = { br: 5, gzip: 6 } as const

/** Made on a thread beside the one that drives sessions. */
export function compress(bytes: Buffer, encoding: Encoding): Promise<Buffer> {
  if (encoding === 'gzip') return gzipped(bytes, { level: QUALITY.gzip })
  return brotli(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: QUALITY.br } })
}
