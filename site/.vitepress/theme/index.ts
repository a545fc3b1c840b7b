// The default theme with the fonts of the machine, so that a page is drawn at once.
import Theme from 'vitepress/theme-without-fonts'
import './style.css'

export default Theme
