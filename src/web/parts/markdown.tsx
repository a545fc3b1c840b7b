// What a model wrote as Markdown, drawn with a closed list of elements. HTML and pictures in it are shown as the text they are: nothing
// is loaded, and nothing of it becomes code. Links show where they lead.
import { Lexer, type Token, type Tokens } from 'marked'
import { Fragment, memo, type ReactNode } from 'react'
import { OutLink } from './button.tsx'
import { Code } from './code.tsx'
import { Text } from './text.tsx'

/** Longer texts are shown as they are: to read them as Markdown would stop the page. */
const CHARS_MAX = 200_000
const DEPTH_MAX = 40

export const Markdown = memo(function Markdown({ text }: { readonly text: string }) {
  const tokens = text.length > CHARS_MAX ? null : tokensIn(text)
  if (tokens === null) return <Text as="block" text={text} />
  liftHeadings(tokens)
  return <div className="markdown">{blocks(tokens, 0)}</div>
})

/** A text whose first heading is a small one has no other above it: its headings are then all of one level. */
function liftHeadings(tokens: readonly Token[]): void {
  const headings = headingsIn(tokens)
  if ((headings[0]?.depth ?? 1) > 2) for (const heading of headings) heading.depth = 1
}

function headingsIn(tokens: readonly Token[]): readonly Tokens.Heading[] {
  return tokens.flatMap((token) => {
    if (token.type === 'heading') return [token as Tokens.Heading]
    const { tokens: inner = [], items = [] } = token as { tokens?: Token[]; items?: Token[] }
    return headingsIn([...inner, ...items])
  })
}

/** Null: it cannot be read as Markdown. */
function tokensIn(text: string): readonly Token[] | null {
  try {
    return Lexer.lex(text, { gfm: true })
  } catch {
    return null
  }
}

function blocks(tokens: readonly Token[] | undefined, depth: number): ReactNode {
  return (tokens ?? []).map((token, i) => <Fragment key={i}>{block(token, depth)}</Fragment>)
}

function block(token: Token, depth: number): ReactNode {
  if (depth > DEPTH_MAX) return <Text as="block" text={token.raw} />
  switch (token.type) {
    // A checkbox is drawn with its item.
    case 'space':
    case 'checkbox':
      return null
    case 'heading': {
      const { depth: level, tokens } = token as Tokens.Heading
      // The page has headings of its own above these.
      return level <= 2 ? <h3>{inline(tokens, depth)}</h3> : <h4>{inline(tokens, depth)}</h4>
    }
    case 'paragraph':
      return <p>{inline((token as Tokens.Paragraph).tokens, depth)}</p>
    case 'blockquote':
      return <blockquote>{blocks((token as Tokens.Blockquote).tokens, depth + 1)}</blockquote>
    case 'list':
      return list(token as Tokens.List, depth)
    case 'code': {
      const { text, lang } = token as Tokens.Code
      return <Code text={text} language={lang ?? ''} />
    }
    case 'hr':
      return <hr />
    case 'table':
      return table(token as Tokens.Table, depth)
    case 'text': {
      const { tokens, text } = token as Tokens.Text
      return tokens ? inline(tokens, depth) : <Text text={text} />
    }
    default:
      return <Text as="block" text={token.raw} />
  }
}

function list({ ordered, start, items }: Tokens.List, depth: number): ReactNode {
  const rows = items.map((item, i) => (
    <li key={i} className={item.task ? 'task' : undefined}>
      {item.task ? <span className="task-mark">{item.checked ? '☑' : '☐'}</span> : null}
      {blocks(item.tokens, depth + 1)}
    </li>
  ))
  return ordered ? <ol start={Number(start) || 1}>{rows}</ol> : <ul>{rows}</ul>
}

function table({ header, rows }: Tokens.Table, depth: number): ReactNode {
  return (
    <div className="table-scroll" tabIndex={0} role="region" aria-label="table">
      <table>
        <thead>
          <tr>
            {header.map((cell, i) => (
              <th key={i}>{inline(cell.tokens, depth)}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, i) => (
            <tr key={i}>
              {row.map((cell, j) => (
                <td key={j}>{inline(cell.tokens, depth)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function inline(tokens: readonly Token[] | undefined, depth: number): ReactNode {
  return (tokens ?? []).map((token, i) => <Fragment key={i}>{span(token, depth)}</Fragment>)
}

function span(token: Token, depth: number): ReactNode {
  if (depth > DEPTH_MAX) return <Text text={token.raw} />
  switch (token.type) {
    case 'strong':
      return <strong>{inline((token as Tokens.Strong).tokens, depth + 1)}</strong>
    case 'em':
      return <em>{inline((token as Tokens.Em).tokens, depth + 1)}</em>
    case 'del':
      return <del>{inline((token as Tokens.Del).tokens, depth + 1)}</del>
    case 'codespan':
      return (
        <code>
          <Text text={(token as Tokens.Codespan).text} />
        </code>
      )
    case 'br':
      return <br />
    case 'link': {
      const { href, tokens } = token as Tokens.Link
      return <OutLink url={href}>{inline(tokens, depth + 1)}</OutLink>
    }
    case 'image': {
      const { text, href } = token as Tokens.Image
      return <Text text={`[picture: ${text || 'without a name'}, ${href}]`} />
    }
    case 'escape':
    case 'text': {
      const { text, tokens } = token as Tokens.Text
      return tokens ? inline(tokens, depth + 1) : <Text text={text} />
    }
    default:
      return <Text text={token.raw} />
  }
}
