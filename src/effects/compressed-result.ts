// The content router in the way of a fresh result: after the hooks and the redaction, before the clip. The original is kept beside the
// log in the same commit, and the metadata of the result says what was done. Loaded by the first result of an agent that has it on.
import type { Json } from '../kernel/content.ts'
import type { Call } from '../kernel/ledger.ts'
import type { Blob } from '../ports/store.ts'
import { compressContent } from '../context/juice/compress.ts'
import type { Hint, Profile } from '../context/juice/kind.ts'
import { tokenOf } from '../context/juice/marker.ts'
import { type Compression, textBlob } from '../engine/wiring.ts'
import type { Output } from '../tools/core/output.ts'
import { isObject } from '../view/json.ts'
import type { Tools } from './toolbox.ts'

type Fresh = {
  readonly call: Call
  /** Redacted already: what is kept of it holds no secret either. */
  readonly output: Output
  readonly compression: Compression
  readonly tools: Tools
  readonly signal: AbortSignal
}

/** A router that fails leaves the result as it is, and its metadata says so. */
export async function compressedResult(
  fresh: Fresh,
): Promise<{ readonly output: Output; readonly original: Blob | null }> {
  const { call, compression, tools, signal } = fresh
  const { compressed: _notOurs, ...metadata } = fresh.output.metadata
  const output = 'compressed' in fresh.output.metadata ? { ...fresh.output, metadata } : fresh.output
  // A tool that reads an original, or lines of a file, returns exactly what was asked for.
  if (tools.get(call.proposal.tool)?.readsKept) return { output, original: null }
  let original: Blob | null = null
  const keep = (text: string): string => {
    original = textBlob(text, 'text/plain')
    return tokenOf(Number.parseInt(call.key, 10), original.hash)
  }
  try {
    const profile = profileFor(compression, tools)
    const made = await compressContent(output.content, hintOf(call), { profile, keep, signal })
    if (!made.changed || original === null) return { output, original: null }
    const { kind, bytesBefore, bytesAfter, lossy, token = '' } = made
    const { hash: blob } = original as Blob
    const compressed = { kind, bytes: bytesBefore, shown: bytesAfter, lossy, token, blob }
    return { output: { ...output, content: made.content, metadata: { ...metadata, compressed } }, original }
  } catch (error) {
    const why = error instanceof Error ? error.message.slice(0, 200) : 'it failed'
    return { output: { ...output, metadata: { ...metadata, compression_error: why } }, original: null }
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
