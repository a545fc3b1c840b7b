// A secret that tools, models and providers say now and then, as it is and in other spellings. No event, no file and no request may have it.
// Only in some seeds: the others go without the search.
import type { Request } from '../src/ports/model.ts'
import type { Write } from '../src/ports/store.ts'
import { secretMark } from '../src/runtime/redact/redactor.ts'

export const SECRET_NAME = 'SIM_KEY'
export const SECRET = 'sk-sim-5Kq9zT3vW8xL2mB7Q'
const SPELLINGS = [SECRET, Buffer.from(SECRET).toString('base64'), Buffer.from(SECRET).toString('hex')] as const

export function hasSecret(seed: number): boolean {
  return seed % 4 === 2
}

/** A spelling of it for each third thing that is said, by what it is said of: no chance, which would change every seed. */
export function secretIn(of: string): string {
  const sum = Array.from(of, (char) => char.charCodeAt(0)).reduce((all, code) => all + code, 0)
  return sum % 3 === 0 ? ` The key is ${SPELLINGS[(sum / 3) % SPELLINGS.length]}.` : ''
}

/** What is about to be written has none of it, and neither has what a model is about to read. */
export function leaksInWrites(writes: readonly Write[]): readonly string[] {
  return writes.flatMap(({ session, events, lane, ...rest }) => {
    const blobs = 'blobs' in rest ? (rest.blobs ?? []) : []
    const texts = [JSON.stringify(events), ...blobs.map(({ data }) => Buffer.from(data).toString('latin1'))]
    return texts.some(hasSpelling) ? [`R1 ${session}: a secret is written by its ${lane}`] : []
  })
}

/** What the log has in place of it. */
export function markSecrets(text: string): string {
  return SPELLINGS.reduce((all, spelling) => all.replaceAll(spelling, secretMark(SECRET_NAME)), text)
}

export function leaksInRequest(request: Request): readonly string[] {
  return hasSpelling(JSON.stringify(request)) ? [`R2 ${request.session}@${request.seq}: a model is shown a secret`] : []
}

function hasSpelling(text: string): boolean {
  return SPELLINGS.some((spelling) => text.includes(spelling))
}
