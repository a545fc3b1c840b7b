// Recordings as events, split the simplest way there is. Not the framing of the transport: that has its own file and tests.
import { readFileSync } from 'node:fs'
import type { WireEvent } from '../../src/models/protocols/protocol.ts'

/** `name` is below test/recordings, without its ending. */
export function recording(name: string): readonly WireEvent[] {
  return framed(readFileSync(new URL(`../recordings/${name}.sse`, import.meta.url), 'utf8'))
}

export function framed(text: string): readonly WireEvent[] {
  const events = text.split('\n\n').map((lines) => ({ event: field(lines, 'event'), data: field(lines, 'data') }))
  return events.filter(({ event, data }) => event !== '' || data !== '')
}

function field(lines: string, name: string): string {
  const found = lines.split('\n').filter((line) => line.startsWith(`${name}: `))
  return found.map((line) => line.slice(name.length + 2)).join('\n')
}
