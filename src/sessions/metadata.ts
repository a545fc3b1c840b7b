// A host's own data about sessions and runs: metadata for its code, and labels to list sessions by. Checked where it is
// given.
import { type Check, describeValue } from '../options.ts'
import { jsonRecord } from '../tools/core/plain-values.ts'

const METADATA_BYTES_MAX = 16 * 1024
const jsonCheck = jsonRecord(32)
const LABELS_MAX = 16
const NAME = /^[A-Za-z0-9_.-]{1,64}$/
const VALUE_CHARS_MAX = 128

export const metadataCheck: Check = (value, name, of) => {
  const wrong = jsonCheck(value, name, of)
  if (wrong !== null) return wrong
  const bytes = Buffer.byteLength(JSON.stringify(value))
  return bytes <= METADATA_BYTES_MAX
    ? null
    : `has ${bytes} bytes as JSON and may have ${METADATA_BYTES_MAX}: keep what is large elsewhere, and its id here`
}

export const labelsCheck: Check = (value, name, of) => {
  const wrong = jsonCheck(value, name, of)
  if (wrong !== null) return wrong
  const labels = Object.entries(value as object)
  if (labels.length > LABELS_MAX) return `has ${labels.length} labels and may have ${LABELS_MAX}`
  for (const [label, text] of labels) {
    if (!NAME.test(label))
      return `has a label ${describeValue(label)}: name it with 1 to 64 letters, digits, "_", "-" or "."`
    if (!isValue(text)) return `has a label "${label}" that is not one line of 1 to ${VALUE_CHARS_MAX} characters`
  }
  return null
}

function isValue(text: unknown): boolean {
  return typeof text === 'string' && text !== '' && text.length <= VALUE_CHARS_MAX && !/[\p{Cc}\p{Cs}]/u.test(text)
}
