// Reads the server-sent events of a response, frame by frame, in the form that this server writes. It uses nothing of
// Node, so it runs in a browser too.
import type { Frames } from '../server/wire.ts'

export type StreamFrame = {
  [Name in keyof Frames]: { readonly event: Name; readonly data: Frames[Name] }
}[keyof Frames]

/** Ends with the connection. An incomplete last frame is dropped. */
export async function* readFrames(body: ReadableStream<Uint8Array>): AsyncGenerator<StreamFrame> {
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
        const frame = parseFrame(part)
        if (frame) yield frame
      }
    }
  } finally {
    await reader.cancel().catch(() => {})
  }
}

/** Null for a comment. */
function parseFrame(part: string): StreamFrame | null {
  let [event, data] = ['', '']
  for (const line of part.split('\n')) {
    if (line.startsWith('event: ')) event = line.slice('event: '.length)
    else if (line.startsWith('data: ')) data = line.slice('data: '.length)
  }
  return event === '' ? null : ({ event, data: JSON.parse(data) as unknown } as StreamFrame)
}
