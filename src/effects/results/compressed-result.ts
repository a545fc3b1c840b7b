// The content router in the way of a fresh result. The metadata of the result says what was done.
import type { Json } from '../../kernel/content.ts'
import type { Call } from '../../kernel/ledger.ts'
import { compressContent } from '../../context/juice/compress.ts'
import type { Hint, Profile } from '../../context/juice/kind.ts'
import type { Compression } from '../../engine/wiring.ts'
import type { Output } from '../../tools/core/output.ts'
import { isObject } from '../../view/json.ts'
import type { KeptOriginal } from './kept-original.ts'
import type { Tools } from '../toolbox.ts'

type Fresh = {
  readonly call: Call
  /** Redacted already: what is kept of it holds no secret either. */
  readonly output: Output
  readonly compression: Compression
  /** Smaller results stay as they are. */
  readonly fromBytes?: number | undefined
  readonly tools: Tools
  readonly signal: AbortSignal
  readonly kept: KeptOriginal
}

/** A router that fails leaves the result as it is, and its metadata says so. */
export async function compressedResult(fresh: Fresh): Promise<Output> {
  const { call, output, compression, fromBytes, tools, signal, kept } = fresh
  const { metadata } = output
  try {
    const profile = profileFor(compression, tools)
    const keep = (): string => kept.keep().token
    const least = fromBytes === undefined ? {} : { minBytes: fromBytes }
    const made = await compressContent(output.content, hintOf(call), { profile, keep, signal, ...least })
    if (!made.changed) return output
    const { kind, bytesBefore, bytesAfter, lossy, content } = made
    const { token, blob } = kept.about()
    const compressed = { kind, bytes: bytesBefore, shown: bytesAfter, lossy, token, blob }
    return { ...output, content, metadata: { ...metadata, compressed } }
  } catch (error) {
    const why = error instanceof Error ? error.message.slice(0, 200) : 'it failed'
    return { ...output, metadata: { ...metadata, compression_error: why } }
  }
}

/** Tools of an agent that writes code: it needs what its commands print as they print it. */
const CODING = ['bash', 'edit']

function profileFor(compression: Compression, tools: Tools): Profile {
  if (compression !== 'auto') return compression
  return CODING.some((name) => tools.has(name)) ? 'light' : 'full'
}

function hintOf({ proposal: { tool, args } }: Call): Hint {
  const command = textIn(args, 'command')
  const query = textIn(args, 'query') ?? textIn(args, 'pattern')
  const path = query === undefined ? textIn(args, 'path') : undefined
  return {
    tool,
    ...(command === undefined ? {} : { command }),
    ...(query === undefined ? {} : { query }),
    ...(path === undefined ? {} : { path }),
  }
}

function textIn(args: Json, name: string): string | undefined {
  const value = isObject(args) ? args[name] : undefined
  return typeof value === 'string' ? value : undefined
}
