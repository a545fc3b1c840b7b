// Standard input and output as the streams of a protocol. Whatever else would be printed meanwhile goes to standard error, so that
// standard output carries the protocol alone.
import { Readable, Writable } from 'node:stream'

export type OwnStreams = {
  readonly input: Readable
  readonly output: Writable
  close(): void
}

export function ownStreams(): OwnStreams {
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

/** The same as streams of the web. */
export function webStreams({ input, output }: OwnStreams) {
  // Sound: Node's streams of bytes are those of the web, under another type.
  return {
    input: Readable.toWeb(input) as unknown as ReadableStream<Uint8Array>,
    output: Writable.toWeb(output) as WritableStream<Uint8Array>,
  }
}
