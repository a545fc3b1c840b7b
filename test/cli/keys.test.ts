// Bytes of a terminal become keys, however they were cut.
import { describe, expect, it } from 'vitest'
import fc from 'fast-check'
import { KeyDecoder, type KeyPress } from '../../src/cli/chat/keys.ts'

/** `C-a`, `A-left`, `S-tab`, `"text"`. */
function nameOf({ name, sequence, ctrl, meta, shift }: KeyPress): string {
  if (name === undefined) return JSON.stringify(sequence)
  const shown = name === 'paste' ? `paste ${JSON.stringify(sequence)}` : name
  return `${ctrl ? 'C-' : ''}${meta ? 'A-' : ''}${shift ? 'S-' : ''}${shown}`
}

/** The keys of these pieces. Text beside text is one. */
function keysOf(...pieces: readonly Uint8Array[]): readonly string[] {
  const decoder = new KeyDecoder()
  const keys = [...pieces.flatMap((piece) => decoder.push(piece)), ...decoder.flush()]
  const joined: KeyPress[] = []
  for (const key of keys) {
    const last = joined.at(-1)
    if (last && last.name === undefined && key.name === undefined)
      joined[joined.length - 1] = { sequence: last.sequence + key.sequence }
    else joined.push(key)
  }
  return joined.map(nameOf)
}
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)
const E = '\u001b'

describe('keys of a terminal', () => {
  it.each([
    ['aé日👍', ['"aé日👍"']],
    ['a\rb\n\t\u007f\b', ['"a"', 'return', '"b"', 'enter', 'tab', 'backspace', 'backspace']],
    ['\u0001\u0003\u000f\u001a\u0000', ['C-a', 'C-c', 'C-o', 'C-z', 'C-space']],
    [E, ['escape']],
    [E + E, ['escape', 'escape']],
    [`${E}b${E}\r${E}\u007f${E}é`, ['A-b', 'A-return', 'A-backspace', 'A-é']],
    [`${E}[A${E}OB${E}[H${E}[4~${E}[3~${E}[5~${E}[6~`, ['up', 'down', 'home', 'end', 'delete', 'pageup', 'pagedown']],
    [`${E}[1;5C${E}[1;3D${E}${E}[D${E}[Z`, ['C-right', 'A-left', 'A-left', 'S-tab']],
    [`${E}[13;2u${E}[27;3;13~${E}[27;5;98~${E}[97;5u${E}[65;2u`, ['S-return', 'A-return', 'C-b', 'C-a', '"A"']],
    [`${E}[97;5:3u${E}[I${E}[?62;4c${E}[<0;1;2M${E}[[Ax`, ['"x"']],
    [`${E}[12\rx`, ['return', '"x"']],
    [`a${E}[200~b\r\n${E}[A\u0003${E}[201~c`, ['"a"', `paste "b\\r\\n\\u001b[A\\u0003"`, '"c"']],
    [`${E}[200~${E}[201~${E}[201~`, ['paste ""']],
  ])('B-CLI-331: %j gives %j', (text, keys) => {
    expect(keysOf(bytes(text))).toEqual(keys)
  })

  it('B-CLI-331: any cut of any bytes gives the same keys', () => {
    const part = fc.oneof(
      fc.constantFrom(
        E,
        E + E,
        `${E}[`,
        `${E}O`,
        `${E}[200~`,
        `${E}[201~`,
        `${E}[1;5`,
        'A',
        '~',
        'é',
        '👍',
        '\r',
        ';2u',
      ),
      fc.string({ unit: 'binary', maxLength: 4 }),
    )
    const stream = fc.oneof(
      fc.array(part).map((parts) => bytes(parts.join(''))),
      fc.uint8Array({ maxLength: 40 }),
    )
    fc.assert(
      fc.property(stream, fc.array(fc.nat(80)), (all, cuts) => {
        const at = [0, ...cuts.filter((cut) => cut < all.length), all.length].toSorted((a, b) => a - b)
        const pieces = at.slice(1).map((end, index) => all.slice(at[index], end))
        expect(keysOf(...pieces)).toEqual(keysOf(all))
      }),
      { numRuns: 2_000 },
    )
  })

  it('B-CLI-331: only Esc itself waits for more bytes, and a paste is never cut short', () => {
    const decoder = new KeyDecoder()
    decoder.push(bytes(`${E}[200~half`))
    expect([decoder.isWaiting, decoder.flush()]).toEqual([false, []])
    expect(decoder.push(bytes(`${E}[20`))).toEqual([])
    expect(decoder.flush()).toEqual([])
    expect(decoder.push(bytes('1~')).map(nameOf)).toEqual(['paste "half"'])
    decoder.push(bytes(E))
    expect(decoder.isWaiting).toBe(true)
    expect(decoder.push(bytes('b')).map(nameOf)).toEqual(['A-b'])
  })
})
