# cmake -DOUT=FILE.cpp -DFILES=a;b;… -P embed.cmake — writes the files' bytes as the table behind
# net/page_assets.h.
set(arrays "")
set(rows "")
set(index 0)
foreach(file IN LISTS FILES)
  get_filename_component(name ${file} NAME)
  file(READ ${file} hex HEX)
  string(REGEX REPLACE "(..)" "'\\\\x\\1'," bytes "${hex}")
  string(APPEND arrays "constexpr char file_${index}[] = {${bytes}0};\n")
  string(APPEND rows "    {\"${name}\", {file_${index}, sizeof file_${index} - 1}},\n")
  math(EXPR index "${index} + 1")
endforeach()
file(WRITE ${OUT} "#include \"net/page_assets.h\"

namespace weir::net {
namespace {
${arrays}
constexpr page_asset assets[] = {
${rows}};
}  // namespace

std::span<const page_asset> page_assets() { return assets; }

}  // namespace weir::net
")
