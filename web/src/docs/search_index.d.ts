/** The index of the search, which the build makes from the pages. */
declare module "search-index" {
  const text: string;
  export default text;
}
