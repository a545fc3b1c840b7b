// Compresses answers for clients that accept it (`Accept-Encoding`). Event streams are never compressed: a compressor
// would hold frames back until it has enough bytes.
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'

export type AnswerEncoding = 'br' | 'gzip'

/** Smaller answers fit into one packet anyway. */
export const COMPRESSED_BYTES_MIN = 1_024

/** The client's preferred encoding: `br` before `gzip` if it weights both the same. Null: it accepts neither. */
export function chooseEncoding(accepted: string | readonly string[] | undefined): AnswerEncoding | null {
  const weights = new Map<string, number>()
  for (const item of String(accepted ?? '').split(',')) {
    const [name = '', ...params] = item.split(';').map((part) => part.trim().toLowerCase())
    const q = params.find((param) => param.startsWith('q='))?.slice(2)
    const weight = q === undefined ? 1 : Number(q)
    if (name !== '') weights.set(name, Number.isFinite(weight) ? weight : 0)
  }
  const weightOf = (name: AnswerEncoding): number => weights.get(name) ?? weights.get('*') ?? 0
  const [br, gz] = [weightOf('br'), weightOf('gzip')]
  if (Math.max(br, gz) <= 0) return null
  return br >= gz ? 'br' : 'gzip'
}

const brotliBytes = promisify(brotliCompress)
const gzipBytes = promisify(gzip)

/**
 * A page's file takes a few milliseconds at these levels. The highest levels take seconds, and the first page waits for
 * them.
 */
const QUALITY = { br: 5, gzip: 6 } as const

/** Runs on another thread than the one that drives sessions. */
export function compressBytes(bytes: Buffer, encoding: AnswerEncoding): Promise<Buffer> {
  if (encoding === 'gzip') return gzipBytes(bytes, { level: QUALITY.gzip })
  return brotliBytes(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: QUALITY.br } })
}
