// A caller's input as a request carries it: bytes become base64.
import type { Input } from '../index.ts'
import type { WireInput } from '../server/wire.ts'

export function wireInput(input: Input): WireInput {
  if (!isParts(input)) return input
  return input.map((part) => {
    if ((part.type !== 'image' && part.type !== 'file') || typeof part.data === 'string') return part as WirePart
    return { ...part, data: base64(part.data) }
  })
}

type WirePart = Extract<WireInput, readonly unknown[]>[number]

function isParts(input: Input): input is Extract<Input, readonly unknown[]> {
  return Array.isArray(input)
}

/** Arguments of a call are limited, so the bytes are turned in pieces. */
const PIECE = 8_192

function base64(bytes: Uint8Array): string {
  let text = ''
  for (let at = 0; at < bytes.length; at += PIECE) text += String.fromCharCode(...bytes.subarray(at, at + PIECE))
  return btoa(text)
}
