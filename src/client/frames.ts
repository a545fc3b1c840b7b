// Server-sent events of a response, one frame at a time, as this server writes them. Nothing of Node: it runs in a browser too.
import type { Frames } from '../server/wire.ts'

export type Frame = { [Name in keyof Frames]: { readonly event: Name; readonly data: Frames[Name] } }[keyof Frames]

/** Ends when the connection does. What was cut in the middle of a frame is not given. */
export async function* framesOf(body: ReadableStream<Uint8Array>): AsyncGenerator<Frame> {
  const reader = body.getReader()
  const utf8 = new TextDecoder()
  let rest = ''
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      rest += utf8.decode(value, { stream: true })
      const parts = rest.split('\n\n')
      rest = parts.pop() ?? ''
      for (const part of parts) {
        const frame = frameIn(part)
        if (frame) yield frame
      }
    }
  } finally {
    await reader.cancel().catch(() => {})
  }
}

/** Null: a comment. */
function frameIn(part: string): Frame | null {
  let [event, data] = ['', '']
  for (const line of part.split('\n')) {
    if (line.startsWith('event: ')) event = line.slice('event: '.length)
    else if (line.startsWith('data: ')) data = line.slice('data: '.length)
  }
  return event === '' ? null : ({ event, data: JSON.parse(data) as unknown } as Frame)
}
