// The field that a page is searched with. Enter and Escape leave it, so that the keys of the page work again.
import type { RefObject } from 'react'

type SearchFieldProps = {
  readonly label: string
  readonly placeholder?: string
  readonly value: string
  readonly onText: (text: string) => void
  readonly field: RefObject<HTMLInputElement | null>
  readonly charsMax?: number
}

export function SearchField({ label, placeholder = `${label}  /`, value, onText, field, charsMax }: SearchFieldProps) {
  return (
    <input
      ref={field}
      className="field"
      type="search"
      aria-label={label}
      placeholder={placeholder}
      maxLength={charsMax}
      value={value}
      onChange={(event) => onText(event.target.value)}
      onKeyDown={(event) => {
        if (event.key === 'Escape' || event.key === 'Enter') event.currentTarget.blur()
      }}
    />
  )
}
