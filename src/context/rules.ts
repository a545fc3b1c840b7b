// Finds standing rules in what users write: sentences that say how something is always or never to be done. Questions, quoted lines and
// code are no rules. Pure, and by words alone: what it misses can be pinned by hand, and what it finds can be unpinned.

const RULE = [
  /\b(?:never|always|must not|mustn['’]t|do not|don['’]t|avoid|prefer|refrain from)\b/i,
  /\b(?:under no circumstances|in no case|at all times|no matter what|without exception|from now on|make sure)\b/i,
  // "the only file", "not only" and "I only looked" say what is, and not what is to be done.
  /(?<!\b(?:the|an|not|if|my|your|our|its|their|his|her|i|he|she|they|it) )\bonly\b/i,
]
/** What people say of themselves while they describe a problem. */
const NO_RULE = /\b(?:i|we|they) (?:do not|don['’]t) (?:know|think|understand|see|remember|get|have|care|mind)\b/gi

/** A longer line is a document, and no rule. */
const LINE_CHARS_READ = 4_000

/** Whether one of its lines is a rule. */
export function holdsRule(text: string): boolean {
  return ruleLinesIn(text).length > 0
}

/** The lines with a rule in them, as they are written. */
export function ruleLinesIn(text: string): readonly string[] {
  let fence: string | null = null
  return text.split('\n').filter((line) => {
    const mark = /^\s*(```|~~~)/.exec(line)?.[1]
    if (mark !== undefined && (fence === null || fence === mark)) {
      fence = fence === null ? mark : null
      return false
    }
    const beginning = line.slice(0, LINE_CHARS_READ)
    return fence === null && !isQuoted(beginning) && sentencesIn(beginning).some(isRuleSentence)
  })
}

/** A line that someone else wrote: marked as a quote, or in quotation marks as a whole. */
function isQuoted(line: string): boolean {
  return /^\s*>/.test(line) || /^\s*["“”„«'‘].*["“”»'’][.,;:!?]?\s*$/.test(line)
}

function sentencesIn(line: string): readonly string[] {
  return line.split(/(?<=[.!?])\s+/)
}

/** What stands in quotation marks within a sentence is quoted too. */
function isRuleSentence(sentence: string): boolean {
  if (sentence.trimEnd().endsWith('?')) return false
  const own = sentence.replace(/"[^"]*"|“[^”]*”|«[^»]*»|`[^`]*`/g, ' ').replace(NO_RULE, ' ')
  return RULE.some((words) => words.test(own))
}
