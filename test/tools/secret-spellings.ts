// Ways in which a command may print a secret, each as the lines that it prints. Only lines that hold a part of the secret are in `lines`.
export type SecretSpelling = { readonly name: string; readonly lines: (secret: string) => readonly string[] }

const wrapped = (text: string, width: number): readonly string[] =>
  Array.from({ length: Math.ceil(text.length / width) }, (_, i) => text.slice(i * width, (i + 1) * width))
const base64 = (secret: string): string => Buffer.from(`user:${secret}`).toString('base64')
const hex = (secret: string): string => Buffer.from(secret).toString('hex')
const each = (secret: string, spell: (code: number) => string): readonly string[] => [
  [...Buffer.from(secret)].map(spell).join(''),
]
const digits = (code: number, base: number, length: number): string => code.toString(base).padStart(length, '0')

/** Rows of `width` bytes each, as a dump prints them. */
function rows(secret: string, width: number, row: (bytes: readonly number[], at: number) => string): readonly string[] {
  const bytes = [...Buffer.from(secret)]
  return Array.from({ length: Math.ceil(bytes.length / width) }, (_, i) =>
    row(bytes.slice(i * width, (i + 1) * width), i * width),
  )
}
const octets = (bytes: readonly number[], base: number, length: number): string =>
  bytes.map((code) => digits(code, base, length)).join(' ')
const text = (bytes: readonly number[]): string => Buffer.from(bytes).toString()

export const SECRET_SPELLINGS: readonly SecretSpelling[] = [
  { name: 'base64 in lines of 11', lines: (secret) => wrapped(Buffer.from(secret).toString('base64'), 11) },
  ...[76, 64, 40, 20].map((width) => ({
    name: `base64 in lines of ${width}`,
    lines: (secret: string) => wrapped(base64(secret), width),
  })),
  ...[60, 32, 16, 9].map((width) => ({
    name: `hexadecimal in lines of ${width}`,
    lines: (secret: string) => wrapped(hex(secret), width),
  })),
  { name: 'hexadecimal in capitals, in lines', lines: (secret) => wrapped(hex(secret).toUpperCase(), 20) },
  ...[20, 12, 8].map((width) => ({
    name: `text in lines of ${width}`,
    lines: (secret: string) => wrapped(secret, width),
  })),
  { name: 'plain text', lines: (secret) => [`the token is ${secret}.`] },
  { name: 'escapes of \\x', lines: (secret) => each(secret, (code) => `\\x${digits(code, 16, 2)}`) },
  { name: 'escapes of \\x{}', lines: (secret) => each(secret, (code) => `\\x{${digits(code, 16, 2)}}`) },
  { name: 'octal escapes', lines: (secret) => each(secret, (code) => `\\${digits(code, 8, 3)}`) },
  { name: 'escapes of \\u', lines: (secret) => each(secret, (code) => `\\u${digits(code, 16, 4)}`) },
  { name: 'escapes of \\u{}', lines: (secret) => each(secret, (code) => `\\u{${digits(code, 16, 1)}}`) },
  { name: 'long escapes of \\u{}', lines: (secret) => each(secret, (code) => `\\u{${digits(code, 16, 6)}}`) },
  { name: 'escapes of \\u{} in JSON', lines: (secret) => each(secret, (code) => `\\\\u{${digits(code, 16, 2)}}`) },
  { name: 'escapes of \\U', lines: (secret) => each(secret, (code) => `\\U${digits(code, 16, 8)}`) },
  { name: 'decimal entities', lines: (secret) => each(secret, (code) => `&#${code};`) },
  { name: 'hexadecimal entities', lines: (secret) => each(secret, (code) => `&#x${digits(code, 16, 2)};`) },
  { name: 'percents', lines: (secret) => each(secret, (code) => `%${digits(code, 16, 2)}`) },
  { name: 'percents of percents', lines: (secret) => each(secret, (code) => `%25${digits(code, 16, 2)}`) },
  { name: 'od -An -tx1', lines: (secret) => rows(secret, 16, (bytes) => ` ${octets(bytes, 16, 2)}`) },
  {
    name: 'od -c',
    lines: (secret) =>
      rows(secret, 16, (bytes, at) => digits(at, 8, 7) + bytes.map((code) => `   ${text([code])}`).join('')),
  },
  { name: 'od -b', lines: (secret) => rows(secret, 16, (bytes, at) => `${digits(at, 8, 7)} ${octets(bytes, 8, 3)}`) },
  {
    name: 'hexdump -C',
    lines: (secret) =>
      rows(secret, 16, (bytes, at) => `${digits(at, 16, 8)}  ${octets(bytes, 16, 2).padEnd(48)}  |${text(bytes)}|`),
  },
  {
    name: 'xxd',
    lines: (secret) =>
      rows(secret, 16, (bytes, at) => {
        const pairs = rows(text(bytes), 2, (pair) => octets(pair, 16, 2).replace(' ', ''))
        return `${digits(at, 16, 8)}: ${pairs.join(' ').padEnd(39)}  ${text(bytes)}`
      }),
  },
  { name: 'xxd -p', lines: (secret) => wrapped(hex(secret), 60) },
  { name: 'rows of four bytes', lines: (secret) => rows(secret, 4, (bytes) => ` ${octets(bytes, 16, 2)}`) },
]
