// Runs the content router over a fresh result. The result's metadata records the changes.
import type { Json } from '../../kernel/content.ts'
import type { Call } from '../../kernel/ledger.ts'
import { shortenContent } from '../../context/compress/shorten-content.ts'
import type { TextHint, CompressProfile } from '../../context/compress/text-kind.ts'
import type { Compression } from '../state/agent.ts'
import type { Output } from '../../tools/core/tool-output.ts'
import { isObject } from '../../view/untrusted-json.ts'
import type { KeptOriginal } from './kept-original.ts'
import type { Tools } from '../state/toolbox.ts'

type CompressionInput = {
  readonly call: Call
  /** Redacted already, so that a kept original holds no secret either. */
  readonly output: Output
  readonly compression: Compression
  /** Smaller results stay as they are. */
  readonly fromBytes?: number | undefined
  readonly tools: Tools
  readonly signal: AbortSignal
  readonly kept: KeptOriginal
}

/** If the router fails, the result stays as it is, and its metadata says so. */
export async function compressResult(fresh: CompressionInput): Promise<Output> {
  const { call, output, compression, fromBytes, tools, signal, kept } = fresh
  const { metadata } = output
  try {
    const profile = compressionProfile(compression, tools)
    const keep = (): string => kept.keep().token
    const least = fromBytes === undefined ? {} : { minBytes: fromBytes }
    const made = await shortenContent(output.content, contentHint(call), { profile, keep, signal, ...least })
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

/** Tools that mark an agent as one that writes code. It needs the output of its commands as they print it. */
const CODING = ['bash', 'edit']

function compressionProfile(compression: Compression, tools: Tools): CompressProfile {
  if (compression !== 'auto') return compression
  return CODING.some((name) => tools.has(name)) ? 'light' : 'full'
}

function contentHint({ proposal: { tool, args } }: Call): TextHint {
  const command = textArgument(args, 'command')
  const query = textArgument(args, 'query') ?? textArgument(args, 'pattern')
  const path = query === undefined ? textArgument(args, 'path') : undefined
  return {
    tool,
    ...(command === undefined ? {} : { command }),
    ...(query === undefined ? {} : { query }),
    ...(path === undefined ? {} : { path }),
  }
}

function textArgument(args: Json, name: string): string | undefined {
  const value = isObject(args) ? args[name] : undefined
  return typeof value === 'string' ? value : undefined
}
