// Standard input and output as the streams of a protocol. All other output goes to standard error, so that standard
// output carries only the protocol.
import { Readable, Writable } from 'node:stream'

export type ProtocolStreams = {
  readonly input: Readable
  readonly output: Writable
  close(): void
}

export function takeStandardStreams(): ProtocolStreams {
  const { stdin, stdout, stderr } = process
  const write = stdout.write.bind(stdout)
  stdout.write = stderr.write.bind(stderr)
  const output = new Writable({
    write: (bytes: Uint8Array, _encoding, done) => void write(bytes, (error) => done(error ?? null)),
  })
  return {
    input: stdin,
    output,
    close: () => {
      stdout.write = write
      stdin.destroy()
    },
  }
}

/** The same as web streams. */
export function webStreams({ input, output }: ProtocolStreams) {
  // Sound: Node's byte streams are web streams under another type.
  return {
    input: Readable.toWeb(input) as unknown as ReadableStream<Uint8Array>,
    output: Writable.toWeb(output) as WritableStream<Uint8Array>,
  }
}
